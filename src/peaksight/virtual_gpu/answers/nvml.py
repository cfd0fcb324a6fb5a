"""What `pynvml` asks the driver, for scripts that print the card's memory with it.

Only the functions of the driver's library are replaced; `pynvml` itself makes its answers out of them. What is not
simulated is not supported, as NVML says of much on many cards.
"""

import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

from peaksight.gpus import Card
from peaksight.virtual_gpu.patches import Patches

# The codes of nvmlReturn_t.
SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE = 0, 2, 3, 7
_Function = Callable[..., int]


class Memory(Protocol):
    """The memory of the card, as its process sees it."""

    @property
    def process_bytes(self) -> int:
        """What the process holds, its context included."""

    def info(self) -> tuple[int, int]:
        """Free and total bytes."""


def install(patches: Patches, card: Card, memory: Memory) -> None:
    """Answer for `card` until `patches` is left, where `pynvml` is installed: torch has imported it then."""
    pynvml = sys.modules.get("pynvml")
    if pynvml is not None and hasattr(pynvml, "_nvmlGetFunctionPointer"):
        functions = _Functions(card, memory)
        patches.set(pynvml, "_LoadNvmlLibrary", lambda: None)
        patches.set(pynvml, "_nvmlGetFunctionPointer", functions.named)


class _Functions:
    """Functions of libnvidia-ml: they write their answers where they are told to, and return a code."""

    def __init__(self, card: Card, memory: Memory) -> None:
        self._card = card
        self._memory = memory

    def named(self, name: str) -> _Function:
        """The function `name`, in any of its versions: `nvmlDeviceGetCount_v2`."""
        base = name.removeprefix("nvml").partition("_v")[0]
        return getattr(self, f"_{base}", _not_supported)

    def _Init(self) -> int:
        return SUCCESS

    def _InitWithFlags(self, flags: Any) -> int:
        return SUCCESS

    def _Shutdown(self) -> int:
        return SUCCESS

    def _DeviceGetCount(self, count: Any) -> int:
        return _write(count, value=1)

    def _DeviceGetHandleByIndex(self, index: Any, device: Any) -> int:
        return SUCCESS if index.value == 0 else INVALID_ARGUMENT

    def _DeviceGetIndex(self, device: Any, index: Any) -> int:
        return _write(index, value=0)

    def _DeviceGetName(self, device: Any, name: Any, length: Any) -> int:
        name.value = self._card.product_name.encode()
        return SUCCESS

    def _DeviceGetCudaComputeCapability(self, device: Any, major: Any, minor: Any) -> int:
        _write(major, value=self._card.capability[0])
        return _write(minor, value=self._card.capability[1])

    def _DeviceGetMemoryInfo(self, device: Any, info: Any) -> int:
        free, total = self._memory.info()
        return _write(info, free=free, total=total, used=total - free)

    def _DeviceGetComputeRunningProcesses(self, device: Any, count: Any, processes: Any) -> int:
        """The first call asks how many there are."""
        _write(count, value=1)
        if processes is None:
            return INSUFFICIENT_SIZE
        processes[0].pid, processes[0].usedGpuMemory = os.getpid(), self._memory.process_bytes
        return SUCCESS


def _not_supported(*args: Any) -> int:
    return NOT_SUPPORTED


def _write(pointer: Any, **values: int) -> int:
    """Write `values` into what `pointer` points to, as `ctypes.byref` made it."""
    for name, value in values.items():
        setattr(pointer._obj, name, value)
    return SUCCESS
