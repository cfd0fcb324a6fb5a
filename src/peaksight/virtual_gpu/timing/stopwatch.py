"""The predicted time of each step: every operator is timed as it passes."""

from typing import Any

import torch

from peaksight.gpus import Card
from peaksight.records import Phase, StepWork
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.timing.clocks import Clocks, Stream
from peaksight.virtual_gpu.timing.efficiencies import efficiencies
from peaksight.virtual_gpu.timing.pinned import PinnedMemory, is_pinned
from peaksight.virtual_gpu.timing.roofline import Cost, cost_of
from peaksight.virtual_gpu.timing.work import launches, tensors_in, touched_bytes
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

aten = torch.ops.aten
_COPIES = (aten.copy_.default, aten._to_copy.default)
# A checkpoint that is not reentrant takes what is saved in it once in the forward and once when that runs again.
_TURNS = 2
# Autograd makes them of fake tensors only.
_UNSEEN = (aten.detach.default,)


class _Counted:
    """The work of one card in the step so far."""

    def __init__(self) -> None:
        self.flops = self.bytes = self.kernels = 0
        self.seconds = 0.0

    def add(self, cost: Cost, seconds: float) -> None:
        self.flops += cost.work.flops
        self.bytes += cost.work.bytes
        self.kernels += cost.work.kernels
        self.seconds += seconds


class Stopwatch:
    """Times one run from its first forward on; `steps` has, for each card, what each step took.

    The host's own work between operators is not in it: what a script computes in Python, what its data pipeline does.
    """

    def __init__(self, card: Card, devices: Devices, loop: TrainingLoop) -> None:
        """For cards of the kind of `card`; nothing has run yet."""
        self.clocks = Clocks()
        self.steps: list[list[StepWork]] = [[] for _ in devices.ledgers]
        self._card, self._devices, self._loop = card, devices, loop
        self._host = efficiencies(card).host
        self._costs: dict[Any, Cost] = {}
        self._launch_seconds = {
            phase: getattr(self._host, f"{phase}_seconds") for phase in ("recording", "backward", "plain")
        }
        self._counted = [_Counted() for _ in devices.ledgers]
        self._pinned = PinnedMemory()
        self._step_began = 0.0
        self._is_running = False

    def ran(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, device: int | None, known: Any
    ) -> None:
        """`func` returned `out`, on the card number `device` where one holds it.

        `known` is the same object whenever that is called with arguments of the same shapes, or None.
        """
        if not (self._is_running or self._has_begun()) or func in _UNSEEN:
            return
        cost = self._costs.get(known)
        if cost is None and (not launches(func) or _is_empty(out)):
            self.clocks.host += self._host.view_seconds
        elif cost is None and func in _COPIES and (copied := self._copied_over_link(func, args, kwargs, out)):
            self._copied(*copied)
        elif (where := _card_among(args) if device is None else device) is not None:
            self._launched(where, cost or self._cost(func, args, kwargs, out, known))

    def _launched(self, device: int, cost: Cost) -> None:
        seconds = cost.tf32_seconds if cost.tf32_seconds is not None and allows_tf32(cost.kind) else cost.seconds
        self._counted[device].add(cost, seconds)
        host_seconds = self._launch_seconds[self.launching()] + cost.host_seconds
        self.clocks.launch(self._stream(device), host_seconds, seconds, cost.work.kernels)

    def left_card(self, device: int, num_bytes: int) -> None:
        """The host has waited for `num_bytes` from the card number `device`."""
        if self._has_begun():
            self._transfer(device, num_bytes, is_pinned=False, waits=True)

    def synchronized(self, until: float | None = None) -> None:
        """The host has waited for what is done at `until`, for all that was launched by default."""
        self.clocks.synchronize(self.clocks.now if until is None else until)
        self.clocks.host += self._host.synchronize_seconds

    def module_called(self) -> None:
        """A module is called."""
        self.clocks.host += self._host.module_seconds

    def packed(self) -> None:
        """A hook has taken a tensor that autograd saves."""
        self.clocks.host += self._host.hook_seconds / _TURNS

    def region_begins(self) -> None:
        """A checkpoint calls its function, in the forward or when that runs again."""
        self.clocks.host += self._host.region_seconds / _TURNS

    def asked(self) -> None:
        """A policy of selective checkpointing was asked about an operator."""
        if self._has_begun():
            self.clocks.host += self._host.policy_seconds

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has gone through its parameters."""
        num_parameters = sum(len(group["params"]) for group in optimizer.param_groups)
        self.clocks.host += self._host.optimizer_seconds + num_parameters * self._host.parameter_seconds

    def backward_begins(self) -> None:
        """The engine of autograd is called."""
        self.clocks.host += self._host.pass_seconds

    def end_step(self, step: int) -> None:
        """`step` ends, and what follows is the next one's."""
        now = self.clocks.now
        for records, counted in zip(self.steps, self._counted, strict=True):
            records.append(
                StepWork(
                    step=step,
                    seconds=now - self._step_began,
                    flops=counted.flops,
                    bytes=counted.bytes,
                    kernels=counted.kernels,
                    kernel_seconds=counted.seconds,
                )
            )
        self._counted = [_Counted() for _ in self.steps]
        self._step_began = now

    def _has_begun(self) -> bool:
        """Whether the first forward has begun: what builds the model belongs to no step."""
        if not self._is_running and self._loop.phase is not Phase.INIT:
            self._is_running = True
            self._step_began = self.clocks.now
        return self._is_running

    def _cost(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, known: Any) -> Cost:
        """As `cost_of`, once for each kind of call, by the shapes of its arguments where it is not `known`."""
        key = _shapes_of(func, args) if known is None else known
        cost = self._costs.get(key)
        if cost is None:
            cost = cost_of(func, args, kwargs, out, self._card)
            if key is not None:
                self._costs[key] = cost
        return cost

    def launching(self) -> str:
        """What the host does when it launches now: a field of `Host`, without its unit."""
        if torch.is_grad_enabled():
            return "recording"
        phase = self._loop.phase
        return "backward" if phase is Phase.BACKWARD else "plain" if phase is Phase.OPTIMIZER else "recording"

    def _stream(self, device: int) -> Stream:
        return device, self._devices.ledgers[device].stream

    def _copied_over_link(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> tuple[int, int, torch.Tensor, bool, bool] | None:
        """Card, bytes, what is on the host, whether it leaves the card and waits; None for a copy within a card."""
        source, target = (args[1], args[0]) if func is aten.copy_.default else (args[0], out)
        here, there = _card_of(source), _card_of(target)
        if (here is None) == (there is None):
            return None
        device, on_host = (there, source) if here is None else (here, target)
        waits = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        return device or 0, touched_bytes(source), on_host, there is None, waits

    def _copied(self, device: int, num_bytes: int, on_host: torch.Tensor, leaves: bool, waits: bool) -> None:
        if not is_pinned(on_host):
            self._transfer(device, num_bytes, is_pinned=False, waits=waits)
            return
        if leaves:
            self.clocks.host += self._pinned.take(on_host, self.clocks.host)
        self._transfer(device, num_bytes, is_pinned=True, waits=waits)
        self._pinned.use(on_host, until=self.clocks.of(self._stream(device)))

    def _transfer(self, device: int, num_bytes: int, is_pinned: bool, waits: bool) -> None:
        """From memory that is not pinned the driver takes the bytes on the host's time."""
        host = self._host
        fraction = host.pinned_fraction if is_pinned else host.pageable_fraction
        seconds = num_bytes / (fraction * self._card.link_bytes_per_second)
        stream = self._stream(device)
        self.clocks.launch(stream, host.plain_seconds + (0.0 if is_pinned else seconds), seconds if is_pinned else 0.0)
        if waits:
            self.synchronized(self.clocks.of(stream))


def _is_empty(out: Any) -> bool:
    """Whether nothing is computed: no kernel is launched then, and no copy waits for the card."""
    return isinstance(out, torch.Tensor) and not out.numel()


def _card_of(tensor: torch.Tensor) -> int | None:
    device = getattr(tensor, "fake_device", tensor.device)
    return device.index if device.type == "cuda" else None


def _card_among(values: tuple[Any, ...]) -> int | None:
    """The card of the first tensor on one, for what returns nothing."""
    return next((card for tensor in tensors_in(values) if (card := _card_of(tensor)) is not None), None)


def allows_tf32(kind: str) -> bool:
    """What the script says of multiplying float32 at this moment: cuDNN's default is yes, cuBLAS's no."""
    if "convolution" in kind:
        return torch.backends.cudnn.conv.fp32_precision == "tf32"  # type: ignore[attr-defined]
    return torch.backends.cuda.matmul.fp32_precision == "tf32"


def _shapes_of(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What decides the cost of a call on strided tensors and numbers; None for others, such as lists."""
    parts = [func]
    for arg in args:
        if isinstance(arg, torch.Tensor) and arg.layout == torch.strided:
            parts += (arg.shape, arg.stride(), arg.dtype)
        elif isinstance(arg, bool):  # a causal mask is one
            parts.append(arg)
        elif isinstance(arg, (list, tuple, torch.Tensor)):
            return None
    return tuple(parts)
