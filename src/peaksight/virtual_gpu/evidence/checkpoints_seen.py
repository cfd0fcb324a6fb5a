"""The calls of torch.utils.checkpoint: what of them runs again, and what never will."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from peaksight.overlays.patches import Patches
from peaksight.records import CheckpointFact
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.torch_private import CHECKPOINT_GENERATOR, FakeTensor, checkpointing
from peaksight.virtual_gpu.training.training_loop import TrainingLoop


@dataclass(slots=True)
class _Call:
    """One call in the making of its fact; ticks are those of the card `device`."""

    device: int
    step: int
    at: str
    module: str
    reentrant: bool
    input_needs_grad: bool
    grad_enabled: bool
    first_tick: int
    last_tick: int = 0
    recomputed_from: int = 0
    recomputed_to: int = 0


class CheckpointsSeen:
    """Every call, also those of transformers, timm and FSDP: all of them end in the same two functions of torch."""

    def __init__(self, devices: Devices, loop: TrainingLoop, lines: SourceLines) -> None:
        """None was made."""
        self._devices, self._loop, self._lines = devices, loop, lines
        self._calls: list[_Call] = []
        self._rerunning: list[_Call] = []

    @property
    def rerun_at(self) -> str:
        """The line of the call whose function a backward pass runs again at the moment, empty where it runs none."""
        return self._rerunning[-1].at if self._rerunning else ""

    def install(self, patches: Patches) -> None:
        """Follow them until `patches` is left."""
        generate: Callable[..., Iterator[None]] = getattr(checkpointing, CHECKPOINT_GENERATOR)
        apply: Callable[..., Any] = checkpointing.CheckpointFunction.apply

        def follow_hooks(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Iterator[None]:
            call = self._begin(function, (args, kwargs), reentrant=False)
            yield from generate(self._noting_reruns(function, call), *args, **kwargs)
            call.last_tick = self._tick(call)

        def follow_reentrant(function: Callable[..., Any], *args: Any) -> Any:
            call = self._begin(function, args, reentrant=True)
            result = apply(self._noting_reruns(function, call), *args)
            call.last_tick = self._tick(call)
            return result

        patches.set(checkpointing, CHECKPOINT_GENERATOR, follow_hooks)
        patches.set(checkpointing.CheckpointFunction, "apply", staticmethod(follow_reentrant))

    def facts_on(self, device: int) -> tuple[CheckpointFact, ...]:
        """The calls with inputs on card number `device`."""
        return tuple(_fact(call) for call in self._calls if call.device == device)

    def modules_called(self, step: int) -> list[str]:
        """The paths of what was checkpointed in a step, one a call in which autograd recorded."""
        return [call.module for call in self._calls if call.step == step and call.grad_enabled]

    def _begin(self, function: Callable[..., Any], inputs: Any, *, reentrant: bool) -> _Call:
        tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
        cards = [t.fake_device.index for t in tensors if isinstance(t, FakeTensor) and t.fake_device.type == "cuda"]
        device = cards[0] or 0 if cards else 0
        call = _Call(
            device=device,
            step=self._loop.step,
            at=self._lines.current().source,
            module=self._path_of(function),
            reentrant=reentrant,
            input_needs_grad=any(tensor.requires_grad for tensor in tensors),
            grad_enabled=torch.is_grad_enabled(),
            first_tick=self._devices.ledgers[device].tick,
        )
        self._calls.append(call)
        return call

    def _path_of(self, function: Any) -> str:
        while isinstance(function, partial):
            function = function.func
        module = getattr(function, "__self__", function)
        return self._loop.modules.path_of(module) if isinstance(module, nn.Module) else self._loop.module

    def _tick(self, call: _Call) -> int:
        return self._devices.ledgers[call.device].tick

    def _noting_reruns(self, function: Callable[..., Any], call: _Call) -> Callable[..., Any]:
        """`function`, which notes in `call` what it does after the forward of the call is over."""

        def run(*args: Any, **kwargs: Any) -> Any:
            if not call.last_tick:
                return function(*args, **kwargs)
            call.recomputed_from = self._tick(call)
            self._rerunning.append(call)
            try:
                return function(*args, **kwargs)
            finally:
                self._rerunning.pop()
                call.recomputed_to = self._tick(call)

        return run


def _fact(call: _Call) -> CheckpointFact:
    return CheckpointFact(
        step=call.step,
        at=call.at,
        module=call.module,
        reentrant=call.reentrant,
        input_needs_grad=call.input_needs_grad,
        grad_enabled=call.grad_enabled,
        first_tick=call.first_tick,
        last_tick=call.last_tick,
        recomputed_from=call.recomputed_from,
        recomputed_to=call.recomputed_to,
    )
