"""What cuDNN's kernels for recurrent layers take from the caching allocator, in the order of the card.

Source: ATen/native/cudnn/RNN.cpp; the order is that of an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
Forward keeps a reserve for backward; each kernel takes a workspace. Both sizes are cuDNN's own: `recurrent_sizes`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from peaksight.records import Role
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.recurrent import flat_numel, views
from peaksight.virtual_gpu.kernels.recurrent_sizes import Layers, algorithm, reserve_bytes, workspace_bytes
from peaksight.virtual_gpu.kernels.temporaries import Rule
from peaksight.virtual_gpu.memory.births import in_words
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.memory.ledger import Ledger

aten = torch.ops.aten

# The rules below take what these operators take.
TEMPORARIES: dict[object, Rule] = dict.fromkeys(
    (aten._cudnn_rnn.default, aten._cudnn_rnn_backward.default, aten._cudnn_rnn_flatten_weight.default),
    lambda call: (),
)
SEED_BYTES = 8
# cudnnDropoutGetStatesSize: 24 bytes a thread of the card, 6,488,064 for the 132 multiprocessors of an H200.
DROPOUT_BYTES_PER_PROCESSOR = 2048 * 24
HOPPER = 9


class Settings(NamedTuple):
    """The arguments that forward and backward share."""

    mode: int
    hidden_size: int
    proj_size: int
    num_layers: int
    batch_first: bool
    dropout: float
    train: bool
    bidirectional: bool
    batch_sizes: Sequence[int]
    dropout_state: torch.Tensor | None

    def by_step(self, sequences: torch.Tensor) -> torch.Tensor:
        """`sequences` with the steps first, or back again."""
        return sequences.transpose(0, 1) if self.batch_first and not self.batch_sizes else sequences

    def layers(self, input: torch.Tensor) -> Layers:
        """What the sizes depend on."""
        steps, batch = (
            (len(self.batch_sizes), self.batch_sizes[0]) if self.batch_sizes else self.by_step(input).shape[:2]
        )
        return Layers(
            mode=self.mode,
            itemsize=input.itemsize,
            is_float16=input.dtype == torch.float16,
            input_size=input.shape[-1],
            hidden_size=self.hidden_size,
            proj_size=self.proj_size,
            num_layers=self.num_layers,
            num_directions=1 + self.bidirectional,
            batch=batch,
            steps=steps,
            num_rows=input.numel() // input.shape[-1],
            is_packed=bool(self.batch_sizes),
            drops=self.train and self.dropout > 0,
        )


@dataclass(slots=True)
class Blocks:
    """What one kernel takes from `ledger`."""

    ledger: Ledger
    op: str

    def take(self, tensor: torch.Tensor, role: Role = Role.UNMARKED) -> torch.Tensor:
        """A block for `tensor`, unless it has one."""
        self.ledger.storages.born(tensor.untyped_storage(), self.op, role, tensor=in_words(tensor))
        return tensor

    def given(self, gradient: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
        """`gradient`, or zeros."""
        if gradient is not None:
            return gradient
        return self.take(torch.zeros_like(like, memory_format=torch.contiguous_format))

    @contextmanager
    def contiguous(self, tensor: torch.Tensor) -> Iterator[None]:
        """For the length of a `with`, a copy of `tensor` where it is not contiguous."""
        copy = self.take(tensor.contiguous())
        yield
        del copy

    @contextmanager
    def workspace(self, num_bytes: int) -> Iterator[None]:
        """For the length of a `with`."""
        birth = self.ledger.allocate(num_bytes, self.op, Role.WORKSPACE)
        yield
        self.ledger.free(birth)


@dataclass(slots=True)
class CudnnRecurrence:
    """The kernels; they take their memory from the card of their input, one of `devices`.

    `note(slug)` is told which sizes were never measured.
    """

    rules: DeviceRules
    devices: Devices
    note: Callable[[str], None]
    _with_dropout_state: set[Ledger] = field(default_factory=set, init=False)

    def fake_kernels(self) -> dict[str, Callable[..., Any]]:
        """A rule `(mode, run, args, kwargs)` by operator name."""
        return {
            "aten::_cudnn_rnn": self._forward,
            "aten::_cudnn_rnn_backward": self._backward,
            "aten::_cudnn_rnn_flatten_weight": self._flatten,
        }

    def _forward(
        self, mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[torch.Tensor, ...]:
        input, weights, stride, buffer, hx, cx, *rest = args
        settings, blocks = Settings(*rest), self._blocks(input, "aten::_cudnn_rnn")
        layers = settings.layers(input)
        self._note_unmeasured(layers)
        if layers.drops:
            self._take_dropout_state(blocks.ledger)
        with mode, blocks.contiguous(settings.by_step(input)):
            shape = settings.by_step(input).shape[:-1]
            out = blocks.take(input.new_empty(*shape, layers.num_directions * layers.out_size))
            hy = blocks.take(hx.new_empty(hx.shape))
            cy = hx.new_empty(0) if cx is None else blocks.take(cx.new_empty(cx.shape))
            if buffer is None:
                buffer = blocks.take(input.new_zeros(flat_numel(weights, stride)))
            with blocks.workspace(self._workspace_bytes(layers, is_forward=True, is_training=settings.train)):
                num_bytes = reserve_bytes(layers) if settings.train else 0
                reserve = blocks.take(input.new_empty(num_bytes, dtype=torch.uint8))
            return settings.by_step(out), hy, cy, reserve, buffer

    def _backward(
        self, mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        input, weights, stride, buffer, hx, cx, out, dy, dhy, dcy, *rest, _, mask = args
        if dy is None and dhy is None and dcy is None:
            return None, None, None, [None] * len(weights)
        settings, blocks = Settings(*rest), self._blocks(input, "aten::_cudnn_rnn_backward")
        if not settings.train:
            raise RuntimeError("cudnn RNN backward can only be called in training mode")
        layers, x = settings.layers(input), settings.by_step(input)
        num_bytes = self._workspace_bytes(layers, is_forward=False, is_training=True)
        with mode:
            dy, dhy = blocks.given(dy, out), blocks.given(dhy, hx)
            dcy = None if cx is None else blocks.given(dcy, cx)
            with blocks.contiguous(x), blocks.contiguous(settings.by_step(dy)):
                dx = blocks.take(torch.empty_like(x, memory_format=torch.contiguous_format))
                dhx = blocks.take(hx.new_empty(hx.shape))
                dcx = None if cx is None else blocks.take(cx.new_empty(cx.shape))
                with blocks.workspace(num_bytes):
                    pass
            if not mask[3]:
                return settings.by_step(dx), dhx, dcx, [None] * len(weights)
            with blocks.contiguous(x):
                dw = _weight_gradients(blocks, weights, stride, buffer, num_bytes)
            return settings.by_step(dx), dhx, dcx, dw

    def _flatten(
        self, mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor:
        weights, stride, *_ = args
        blocks = self._blocks(weights[0], "aten::_cudnn_rnn_flatten_weight")
        with mode:
            buffer = blocks.take(weights[0].new_zeros(flat_numel(weights, stride)), Role.PARAMETER)
            for weight, view in zip(weights, views(buffer, weights), strict=True):
                weight.data = view
            return buffer

    def _workspace_bytes(self, layers: Layers, *, is_forward: bool, is_training: bool) -> int:
        chosen = algorithm(layers, self.rules, is_forward=is_forward)
        return workspace_bytes(layers, chosen, is_training=is_training)

    def _blocks(self, tensor: Any, op: str) -> Blocks:
        return Blocks(self.devices.ledgers[tensor.fake_device.index], op)

    def _take_dropout_state(self, ledger: Ledger) -> None:
        """One for all layers of a process on a card: `get_dropout_state`."""
        if ledger not in self._with_dropout_state:
            self._with_dropout_state.add(ledger)
            op = "aten::_cudnn_init_dropout_state"
            ledger.free(ledger.allocate(SEED_BYTES, op, Role.WORKSPACE))
            ledger.allocate(self.rules.multi_processor_count * DROPOUT_BYTES_PER_PROCESSOR, op, Role.WORKSPACE)

    def _note_unmeasured(self, layers: Layers) -> None:
        if self.rules.capability[0] != HOPPER or layers.itemsize == torch.float64.itemsize:
            self.note("recurrent-layers")


def _weight_gradients(
    blocks: Blocks, weights: Sequence[torch.Tensor], stride: int, buffer: torch.Tensor, num_bytes: int
) -> list[torch.Tensor]:
    """Views of one buffer, or copies of its parts where the weights lack the biases that it has room for."""
    parts = views(blocks.take(torch.zeros_like(buffer)), weights)
    with blocks.workspace(num_bytes):
        return parts if stride >= 4 else [blocks.take(torch.empty_like(part)) for part in parts]
