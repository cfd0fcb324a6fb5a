"""Who reads what a softmax gives: weights of attention that only the product with the values reads need not be made."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from peaksight.records import Phase, WeightsFact
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

aten = torch.ops.aten

SOFTMAX = frozenset({aten._softmax.default, aten._safe_softmax.default})
_PRODUCTS = frozenset({aten.bmm.default, aten.baddbmm.default})
# What these make of weights are weights.
_SAME = frozenset({aten.native_dropout.default, aten._to_copy.default, aten.clone.default, aten.bernoulli_.float})
_MAX_CALLERS = 6


@dataclass(slots=True, eq=False)
class _Call:
    """One softmax: how many elements it gave, how many of them something read, and where."""

    born: int
    card: int
    numel: int
    callers: str
    num_read: int = 0
    reader: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """What a block has of the weights of `call`: themselves, or what was computed of `num_shown` of them alone."""

    call: _Call
    is_weights: bool
    num_shown: int


class WeightsSeen:
    """Follows each softmax of a forward pass until its weights, and what was computed of them alone, are gone.

    What is computed of them together with something else is what the model computes: then they are read. So they are
    where their values reach the host, or a backward pass begins at them.
    """

    def __init__(self, devices: Devices, loop: TrainingLoop, lines: SourceLines) -> None:
        """No softmax has run."""
        self._devices, self._loop, self._lines = devices, loop, lines
        self._calls: list[_Call] = []
        self._parts: dict[Birth, _Part] = {}

    def follows(self, func: Any) -> bool:
        """Whether `func` has to be told: it begins weights, or may read some."""
        return (bool(self._parts) or func in SOFTMAX) and self._loop.phase is not Phase.BACKWARD

    def ran(self, func: Any, args: tuple[Any, ...], out: Any) -> None:
        """`func` made `out` of `args`."""
        if func in SOFTMAX:
            self._begins(args, out)
            return
        tensors = [(tensor, self._birth_of(tensor)) for tensor in _tensors(args)]
        read = [(tensor, self._parts[birth]) for tensor, birth in tensors if birth in self._parts]
        if not read or (func in _PRODUCTS and any(part.is_weights for _, part in read)):
            return
        made = [birth for tensor in _tensors((out,)) if (birth := self._birth_of(tensor)) is not None]
        others = [birth for _, birth in tensors if birth not in self._parts]
        for tensor, part in read:
            shown = min(tensor.numel(), part.call.numel) if part.is_weights else part.num_shown
            if others:
                self._read(part.call, shown)
            else:
                kept = _Part(part.call, part.is_weights and func in _SAME, shown)
                self._parts |= {birth: kept for birth in made if birth not in self._parts}

    def reaches(self, tensors: Any) -> None:
        """The host or a backward pass gets the values of `tensors`."""
        for tensor in _tensors((tensors,)) if self._parts else ():
            if (part := self._parts.get(self._birth_of(tensor))) is not None:  # type: ignore[arg-type]
                self._read(part.call, part.num_shown)

    def step_ends(self) -> None:
        """Forget what is gone."""
        self._parts = {birth: part for birth, part in self._parts.items() if birth.died is None}

    def facts_on(self, card: int) -> tuple[WeightsFact, ...]:
        """A row for each softmax of the card."""
        return tuple(
            WeightsFact(born=c.born, callers=c.callers, read_share=c.num_read / c.numel, reader=c.reader)
            for c in self._calls
            if c.card == card
        )

    def _begins(self, args: tuple[Any, ...], out: Any) -> None:
        birth = self._birth_of(out) if isinstance(out, FakeTensor) else None
        if birth is not None and out.dim() >= 3 and args[1] in (-1, out.dim() - 1):
            callers = " < ".join(self._lines.callers(_MAX_CALLERS))
            call = _Call(birth.born, out.fake_device.index or 0, out.numel(), callers)
            self._calls.append(call)
            self._parts[birth] = _Part(call, True, out.numel())

    def _read(self, call: _Call, num_read: int) -> None:
        if num_read > call.num_read:
            call.num_read, call.reader = num_read, self._lines.current().source

    def _birth_of(self, tensor: FakeTensor) -> Birth | None:
        return self._devices.birth_of(tensor) if tensor.layout == torch.strided else None


def _tensors(values: Any) -> Iterator[FakeTensor]:
    """The fake tensors among `values` and in the lists among them."""
    for value in values:
        if isinstance(value, FakeTensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
