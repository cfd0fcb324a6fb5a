"""What a script asks about memory, answered from the simulation.

Only the C functions are replaced: `torch.cuda.memory` and `torch.accelerator` make their answers out of them as ever.
"""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from peaksight.errors import UnsupportedError
from peaksight.gpus import Room
from peaksight.records import Action
from peaksight.units import MIB
from peaksight.virtual_gpu.answers import nvml
from peaksight.virtual_gpu.answers.settings_answers import SettingsAnswers
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.memory.raw_memory import RawMemory
from peaksight.virtual_gpu.memory_history.history_answers import HistoryAnswers
from peaksight.virtual_gpu.patches import Patches

# Called with the device, the bytes that it was asked for, those that it may give in all, and those that are free.
OutOfMemoryObserver = Callable[[int, int, int, int], Any]
_CUDA_SUCCESS = 0
_NO_PRIVATE_POOLS: dict[str, Any] = {"reserved_bytes_by_private_pools": {}}
_STAT = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
_TIMES = dict.fromkeys(("total", "max", "min", "count", "avg"), 0)


def install(patches: Patches, ledger: Ledger, room: Room, observers: list[OutOfMemoryObserver]) -> None:
    """Answer for the card of `room` until `patches` is left; the script's observers of its OOMs join `observers`."""
    raw, settings = RawMemory(ledger), SettingsAnswers(ledger)
    memory = DeviceMemory(ledger, room)
    history = HistoryAnswers(ledger, raw, settings)
    history.install(patches)
    nvml.install(patches, room.card, memory)
    statistics = memory.statistics()
    for owner, answers in (
        (torch._C, statistics | raw.answers() | settings.answers() | history.answers()),
        (torch._C, accelerator_answers(statistics) | host_memory() | {"_accelerator_getMemoryInfo": memory.info}),
        (torch._C, {"_cuda_attach_out_of_memory_observer": observers.append}),
        (torch.cuda, {"_initialized": True, "_cudart": memory.cudart(), "MemPool": MemPool} | memory.driver()),
        (torch.cuda.memory, {"MemPool": MemPool} | memory.driver()),
        (torch.cuda.memory.CUDAPluggableAllocator, {"__init__": _refuse("CUDAPluggableAllocator")}),
    ):
        for name, answer in answers.items():
            patches.set(owner, name, answer)


class DeviceMemory:
    """The memory of the one card as its process sees it."""

    def __init__(self, ledger: Ledger, room: Room) -> None:
        """The allocator of `ledger` has the card of `room`."""
        self._ledger = ledger
        self._allocator = ledger.allocator
        self._room = room

    def info(self, device: int = 0) -> tuple[int, int]:
        """Free and total bytes, as `cudaMemGetInfo`: nothing is free where the simulation goes beyond the card."""
        return self._room.free_bytes(self._taken_bytes), self._room.card.total_bytes

    def statistics(self) -> dict[str, Any]:
        """The C functions of `torch.cuda.memory` about the caching allocator as a whole."""
        return {
            "_cuda_memoryStats": _of_device(lambda: nested(self._allocator.memory_stats()) | _NO_PRIVATE_POOLS),
            "_cuda_resetPeakMemoryStats": _of_device(self._allocator.reset_peak_stats),
            "_cuda_resetAccumulatedMemoryStats": _of_device(self._allocator.reset_accumulated_stats),
            "_cuda_emptyCache": self._ledger.empty_cache,
            "_cuda_setMemoryFraction": self._set_fraction,
            "_cuda_getMemoryFraction": _of_device(self._get_fraction),
            "_cuda_getAllocatorBackend": lambda: "native",
            "_cuda_customAllocator": _refuse("CUDAPluggableAllocator"),
            "_cuda_changeCurrentAllocator": _refuse("change_current_allocator"),
            "_cuda_cudaCachingAllocator_enable": _keep_enabled,
            "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        }

    def cudart(self) -> SimpleNamespace:
        """The functions of CUDA's runtime that torch hands out."""
        calls = ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister")
        return SimpleNamespace(
            cudaError=SimpleNamespace(success=_CUDA_SUCCESS),
            cudaGetErrorString=lambda error: "no error",
            cudaMemGetInfo=self.info,
            **{name: lambda *args: _CUDA_SUCCESS for name in calls},
        )

    def driver(self) -> dict[str, Any]:
        """What torch asks the driver's tools."""
        return {
            "list_gpu_processes": lambda device=None: self._processes(),
            "device_memory_used": lambda device=None: self._room.card.total_bytes - self.info()[0],
            "memory_usage": lambda device=None: 0,
        }

    @property
    def _taken_bytes(self) -> int:
        """What the process holds beside its context."""
        return self._allocator.reserved_bytes + self._allocator.outside_bytes

    @property
    def process_bytes(self) -> int:
        """What the process holds, its context included."""
        return self._room.context_bytes + self._taken_bytes

    def _processes(self) -> str:
        used = self.process_bytes
        return f"GPU:0\nprocess {os.getpid():>10d} uses {used / MIB:>12.3f} MB GPU memory"

    def _set_fraction(self, fraction: float, device: int) -> None:
        self._ledger.set_memory_fraction(fraction)

    def _get_fraction(self) -> float:
        """What was allowed last, which stays where the simulation goes beyond the card."""
        allowed = [call.bytes for call in self._ledger.calls if call.action is Action.ALLOWED]
        return allowed[-1] / self._room.card.total_bytes if allowed and allowed[-1] else 1.0


def accelerator_answers(statistics: dict[str, Any]) -> dict[str, Any]:
    """The same C functions under the names that do not say CUDA."""
    return {
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getDeviceStats": statistics["_cuda_memoryStats"],
        "_accelerator_resetPeakStats": statistics["_cuda_resetPeakMemoryStats"],
        "_accelerator_resetAccumulatedStats": statistics["_cuda_resetAccumulatedMemoryStats"],
        "_accelerator_emptyCache": statistics["_cuda_emptyCache"],
        "_accelerator_emptyHostCache": lambda: None,
    }


def host_memory() -> dict[str, Any]:
    """Pinned memory is host memory like any other here: its allocator has handed out nothing."""
    return {
        "_cuda_hostMemoryStats": lambda: {
            "num_host_alloc": 0,
            "num_host_free": 0,
            **{name: dict(_STAT) for name in ("allocations", "active_requests", "allocated_bytes", "active_bytes")},
            **{name: dict(_TIMES) for name in ("host_alloc_time", "host_free_time")},
        },
        "_cuda_resetPeakHostMemoryStats": lambda: None,
        "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
    }


def nested(flat: dict[str, int]) -> dict[str, Any]:
    """`{"a": {"b": 1}}` for `{"a.b": 1}`."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *path, name = key.split(".")
        inner = tree
        for part in path:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return tree


def _of_device(answer: Callable[[], Any]) -> Callable[[int], Any]:
    """`answer` of the one card, for a C function that takes the index of a device."""

    def answer_for(device: int) -> Any:
        if device != 0:
            raise RuntimeError(f"Invalid device argument {device}: did you call init?")
        return answer()

    return answer_for


def _keep_enabled(value: bool) -> None:
    if not value:
        _refuse("caching_allocator_enable(False)")()


def _refuse(name: str) -> Callable[..., None]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            f"Can't simulate {name}: memory comes from PyTorch's own caching allocator and its default pool only. "
            "Leave it out to see what the job needs there.",
            slug="allocator-not-simulated",
        )

    return refuse


class MemPool:
    """Stands in for torch.cuda.MemPool, of which there is none."""

    __init__ = _refuse("torch.cuda.MemPool")
