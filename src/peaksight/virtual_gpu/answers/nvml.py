"""What `pynvml` asks the driver, for scripts that print the cards' memory with it.

Only the functions of the driver's library are replaced; `pynvml` itself makes its answers out of them. What is not
simulated is not supported, as NVML says of much on many cards.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, Protocol

from peaksight.gpus import Card
from peaksight.overlays.patches import Patches

# The codes of nvmlReturn_t.
SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, INSUFFICIENT_SIZE = 0, 2, 3, 7
_Function = Callable[..., int]


class Memory(Protocol):
    """The memory of the cards, as their process sees it."""

    @property
    def num_cards(self) -> int:
        """How many cards the machine has."""

    @property
    def driver_numbers(self) -> tuple[int, ...]:
        """The number of each card that the process sees, by its index there."""

    def process_bytes(self, device: int) -> int:
        """What the process holds of a card, its context included."""

    def info(self, device: int) -> tuple[int, int]:
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
        return _write(count, value=self._memory.num_cards)

    def _DeviceGetHandleByIndex(self, index: Any, device: Any) -> int:
        """A handle is a pointer that nobody follows: the card's number, and one more, for none is null."""
        if not 0 <= index.value < self._memory.num_cards:
            return INVALID_ARGUMENT
        ctypes.c_void_p.from_buffer(device._obj).value = index.value + 1
        return SUCCESS

    def _DeviceGetIndex(self, device: Any, index: Any) -> int:
        return _write(index, value=_number(device))

    def _DeviceGetName(self, device: Any, name: Any, length: Any) -> int:
        name.value = self._card.product_name.encode()
        return SUCCESS

    def _DeviceGetCudaComputeCapability(self, device: Any, major: Any, minor: Any) -> int:
        _write(major, value=self._card.capability[0])
        return _write(minor, value=self._card.capability[1])

    def _DeviceGetMemoryInfo(self, device: Any, info: Any) -> int:
        seen_as = self._seen_as(device)
        free, total = self._memory.info(seen_as) if seen_as is not None else (self._card.total_bytes,) * 2
        return _write(info, free=free, total=total, used=total - free)

    def _DeviceGetComputeRunningProcesses(self, device: Any, count: Any, processes: Any) -> int:
        """The first call asks how many there are."""
        seen_as = self._seen_as(device)
        _write(count, value=int(seen_as is not None))
        if seen_as is None:
            return SUCCESS
        if processes is None:
            return INSUFFICIENT_SIZE
        processes[0].pid, processes[0].usedGpuMemory = os.getpid(), self._memory.process_bytes(seen_as)
        return SUCCESS

    def _DeviceGetUtilizationRates(self, device: Any, rates: Any) -> int:
        """A card that only seems to work is idle and cold."""
        return _write(rates, gpu=0, memory=0)

    def _DeviceGetPowerUsage(self, device: Any, milliwatts: Any) -> int:
        return _write(milliwatts, value=0)

    def _DeviceGetTemperature(self, device: Any, sensor: Any, degrees: Any) -> int:
        return _write(degrees, value=0)

    def _DeviceGetClockInfo(self, device: Any, kind: Any, megahertz: Any) -> int:
        return _write(megahertz, value=0)

    def _seen_as(self, device: Any) -> int | None:
        """The index of a card in this process, None where CUDA_VISIBLE_DEVICES hides it."""
        numbers = self._memory.driver_numbers
        return numbers.index(_number(device)) if _number(device) in numbers else None


def _number(device: Any) -> int:
    """The card's number in a handle."""
    return (ctypes.cast(device, ctypes.c_void_p).value or 1) - 1


def _not_supported(*args: Any) -> int:
    return NOT_SUPPORTED


def _write(pointer: Any, **values: int) -> int:
    """Write `values` into what `pointer` points to, as `ctypes.byref` made it."""
    for name, value in values.items():
        setattr(pointer._obj, name, value)
    return SUCCESS
