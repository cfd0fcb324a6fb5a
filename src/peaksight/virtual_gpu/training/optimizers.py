"""Optimizers: the defaults of the card, and the end of each step."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakSet

import torch
from torch.autograd.profiler import record_function
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from peaksight.overlays.patches import Patches
from peaksight.records import Phase
from peaksight.virtual_gpu.tensors.devices import for_python
from peaksight.virtual_gpu.torch_private import FakeTensor, foreach_utils, optimizer_module
from peaksight.virtual_gpu.training import lbfgs
from peaksight.virtual_gpu.training.modules import Parameters
from peaksight.virtual_gpu.training.training_loop import TrainingLoop


def install(
    patches: Patches, loop: TrainingLoop, parameters: Parameters, on_stepped: Callable[[Optimizer], None]
) -> None:
    """Follow every optimizer until `patches` is left; `on_stepped` is told of each that has stepped."""
    _allow_foreach(patches)
    lbfgs.install(patches)
    stepping = _Stepping(loop, parameters, on_stepped)
    patches.callback(register_optimizer_step_pre_hook(stepping.begin).remove)
    patches.callback(register_optimizer_step_post_hook(stepping.end).remove)
    patches.set(torch.autograd.profiler, "record_function", _recording(loop, stepping))


def _recording(loop: TrainingLoop, stepping: "_Stepping") -> type[record_function]:
    """The profiler's record, which is around the hooks of a step: an exception passes it, but no hook after it."""

    class Record(record_function):
        def __enter__(self) -> record_function:
            self.num_phases = loop.num_phases
            return super().__enter__()

        def __exit__(self, kind: Any, *error: Any) -> None:
            if kind is not None:
                loop.leave_all_but(self.num_phases)
                stepping.mark_states()
            super().__exit__(kind, *error)

    return Record


def _allow_foreach(patches: Patches) -> None:
    """Optimizers and clip_grad_norm_ test types before they take the foreach path: FakeTensor is as good as Tensor."""
    for module in (optimizer_module, foreach_utils):
        supported = module._foreach_supported_types
        supported.append(FakeTensor)
        patches.callback(supported.remove, FakeTensor)
    group = torch._C._group_tensors_by_device_and_dtype
    patches.set(torch._C, group.__name__, lambda *lists: _on_devices_of_python(group(*lists)))


def _on_devices_of_python(groups: dict[tuple[torch.device, Any], Any]) -> dict[tuple[torch.device, Any], Any]:
    return {(for_python(device), dtype): tensors for (device, dtype), tensors in groups.items()}


class _Stepping:
    """Hooks around `Optimizer.step`."""

    def __init__(self, loop: TrainingLoop, parameters: Parameters, on_stepped: Callable[[Optimizer], None]) -> None:
        self._loop, self._parameters, self._on_stepped = loop, parameters, on_stepped
        self._begun: WeakSet[Optimizer] = WeakSet()

    def begin(
        self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self._begun.add(optimizer)
        self._parameters.add_optimized(optimizer)
        self._parameters.mark()
        self._loop.enter(Phase.OPTIMIZER)
        _, *others = args
        return (optimizer, *map(self._followed, others)), {name: self._followed(kwargs[name]) for name in kwargs}

    def _followed(self, argument: Any) -> Any:
        """A closure is the forward and the backward of its step."""
        if not callable(argument):
            return argument

        @wraps(argument)
        def closure(*args: Any, **kwargs: Any) -> Any:
            with self._loop.within(Phase.FORWARD):
                return argument(*args, **kwargs)

        return closure

    def end(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._loop.leave(Phase.OPTIMIZER)
        self._parameters.mark_state(optimizer)
        self._on_stepped(optimizer)
        self._loop.optimizer_stepped(optimizer)

    def mark_states(self) -> None:
        """A step may have ended in an exception, and have made some of its state before."""
        for optimizer in self._begun:
            self._parameters.mark_state(optimizer)
