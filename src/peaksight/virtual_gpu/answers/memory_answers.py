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
from peaksight.overlays.patches import Patches
from peaksight.records import Action
from peaksight.units import MIB
from peaksight.virtual_gpu.answers import nvml
from peaksight.virtual_gpu.answers.settings_answers import SettingsAnswers
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.memory.raw_memory import RawMemory
from peaksight.virtual_gpu.memory_history.history_answers import HistoryAnswers

# Called with the device, the bytes that it was asked for, those that it may give in all, and those that are free.
OutOfMemoryObserver = Callable[[int, int, int, int], Any]
_CUDA_SUCCESS = 0
_OTHER_ALLOCATOR = (
    "memory comes from PyTorch's own caching allocator and its default pool only. "
    "Leave it out to see what the job needs there"
)
_CAPTURED = (
    "what a captured graph needs stays in a memory pool of its own. "
    "Leave the capture out, behind an option of the script, to see what the job needs without it"
)
_NO_PRIVATE_POOLS: dict[str, Any] = {"reserved_bytes_by_private_pools": {}}
_STAT = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
_TIMES = dict.fromkeys(("total", "max", "min", "count", "avg"), 0)


def install(patches: Patches, devices: Devices, room: Room, observers: list[OutOfMemoryObserver]) -> None:
    """Answer for the cards of `room` until `patches` is left; the script's observers of its OOMs join `observers`."""
    raw, settings = RawMemory(devices), SettingsAnswers(devices)
    memory = DeviceMemory(devices, room)
    history = HistoryAnswers(devices, raw, settings)
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
        (torch.cuda.CUDAGraph, {"__new__": _refuse("CUDA graphs", _CAPTURED)}),
        (torch.cuda.graphs, {"_graph_pool_handle": _refuse("CUDA graphs", _CAPTURED)}),
    ):
        for name, answer in answers.items():
            patches.set(owner, name, answer)


class DeviceMemory:
    """The memory of the cards as their process sees it."""

    def __init__(self, devices: Devices, room: Room) -> None:
        """The allocator of each of `devices` has a card like that of `room`."""
        self._devices = devices
        self._room = room

    def info(self, device: Any = None) -> tuple[int, int]:
        """Free and total bytes, as `cudaMemGetInfo`: nothing is free where the simulation goes beyond the card."""
        return self._room.free_bytes(_taken_bytes(self._ledger(device))), self._room.card.total_bytes

    def statistics(self) -> dict[str, Any]:
        """The C functions of `torch.cuda.memory` about the caching allocator as a whole."""
        return {
            "_cuda_memoryStats": self._statistics,
            "_cuda_resetPeakMemoryStats": lambda device: self._of_allocator(device).allocator.reset_peak_stats(),
            "_cuda_resetAccumulatedMemoryStats": self._reset_accumulated,
            "_cuda_emptyCache": self._empty_cache,
            "_cuda_setMemoryFraction": self._set_fraction,
            "_cuda_getMemoryFraction": self._get_fraction,
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
            "list_gpu_processes": self._processes,
            "device_memory_used": lambda device=None: self._room.card.total_bytes - self.info(device)[0],
            "memory_usage": lambda device=None: 0,
        }

    @property
    def driver_numbers(self) -> tuple[int, ...]:
        """The number that the driver gives each card, by its index in this process."""
        return self._devices.visible

    @property
    def num_cards(self) -> int:
        """How many the machine has."""
        return len(self._devices.ledgers)

    def process_bytes(self, device: Any = None) -> int:
        """What the process holds, its context included."""
        return self._room.context_bytes + _taken_bytes(self._ledger(device))

    def _ledger(self, device: Any) -> Ledger:
        return self._devices.ledgers[self._devices.index_of(device)]

    def _of_allocator(self, device: int) -> Ledger:
        """As `_ledger`, in the words of the allocator for a device that is not there."""
        if not 0 <= device < self._devices.count:
            raise RuntimeError(f"Invalid device argument {device}: did you call init?")
        return self._devices.ledgers[device]

    def _statistics(self, device: int) -> dict[str, Any]:
        return nested(self._of_allocator(device).allocator.memory_stats()) | _NO_PRIVATE_POOLS

    def _reset_accumulated(self, device: int) -> None:
        self._of_allocator(device).allocator.reset_accumulated_stats()

    def _set_fraction(self, fraction: float, device: int) -> None:
        self._of_allocator(device).set_memory_fraction(fraction)

    def _empty_cache(self) -> None:
        for ledger in self._devices.used:
            ledger.empty_cache()

    def _processes(self, device: Any = None) -> str:
        index, used = self._devices.index_of(device), self.process_bytes(device)
        return f"GPU:{index}\nprocess {os.getpid():>10d} uses {used / MIB:>12.3f} MB GPU memory"

    def _get_fraction(self, device: int) -> float:
        """What was allowed last, which stays where the simulation goes beyond the card."""
        allowed = [call.bytes for call in self._of_allocator(device).calls if call.action is Action.ALLOWED]
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


def _taken_bytes(ledger: Ledger) -> int:
    """What the process holds of a card beside its context."""
    return ledger.allocator.reserved_bytes + ledger.allocator.outside_bytes


def _keep_enabled(value: bool) -> None:
    if not value:
        _refuse("caching_allocator_enable(False)")()


def _refuse(name: str, cause: str = _OTHER_ALLOCATOR) -> Callable[..., None]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            f"Can't simulate {name}: {cause}.",
            slug="allocator-not-simulated",
        )

    return refuse


class MemPool:
    """Stands in for torch.cuda.MemPool, of which there is none."""

    __init__ = _refuse("torch.cuda.MemPool")
