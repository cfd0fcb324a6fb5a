"""The backward pass: its phase, and the device requests of what is recomputed inside it or saved for it."""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.records import Phase
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.device_requests import DeviceRequests
from peaksight.virtual_gpu.timing.stopwatch import Stopwatch
from peaksight.virtual_gpu.training.engine_numbers import EngineNumbers
from peaksight.virtual_gpu.training.modules import Parameters
from peaksight.virtual_gpu.training.training_loop import TrainingLoop


def install(
    patches: Patches,
    requests: DeviceRequests,
    loop: TrainingLoop,
    devices: Devices,
    parameters: Parameters,
    on_begin: Callable[..., None],
    stopwatch: Stopwatch,
) -> None:
    """Follow every call of the autograd engine until `patches` is left; `on_begin` is told the roots of an outer one.

    It is told too whether that keeps the graph (`retains_graph`) and records its own (`creates_graph`).

    `Tensor.backward` is itself an overridable function, so the function mode is off inside it; recomputation under
    checkpointing needs it as its forward had it.
    """
    run_engine, numbers = torch.autograd.graph._engine_run_backward, EngineNumbers()

    def followed(*args: Any, **kwargs: Any) -> Any:
        if loop.phase is Phase.BACKWARD:
            return run(*args, **kwargs)
        for ledger in devices.ledgers:
            ledger.backward_began()
        creates_graph = bool(args[3])
        gradients: list[Any] = []
        on_begin(args[0], retains_graph=bool(args[2]), creates_graph=creates_graph)
        with numbers.within(args[0], gradients, creates_graph=creates_graph):
            result = run(*args, **kwargs)
            gradients += result or ()
        return result

    def run(*args: Any, **kwargs: Any) -> Any:
        stopwatch.backward_begins()
        with loop.within(Phase.BACKWARD), requests:
            result = run_engine(*args, **kwargs)
        parameters.mark()
        return result

    for owner in (torch.autograd, torch.autograd.graph):
        if hasattr(owner, "_engine_run_backward"):
            patches.set(owner, "_engine_run_backward", followed)
    _follow_packing(patches, requests, stopwatch)


def _follow_packing(patches: Patches, requests: DeviceRequests, stopwatch: Stopwatch) -> None:
    """A pack hook runs inside the operator that saves, where the function mode is off: it may ask for devices too."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    begin = hooks.__init__

    def begin_followed(self: Any, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
        def pack(tensor: torch.Tensor) -> Any:
            stopwatch.packed()
            with requests:
                return pack_hook(tensor)

        begin(self, pack, unpack_hook)

    patches.set(hooks, "__init__", begin_followed)
