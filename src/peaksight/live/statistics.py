"""What the allocator counted in each step; the peaks that the script itself asks for stay what they would be.

The peak of a step is known only if the allocator's own is reset at the beginning of it. What was reset is kept, and put
back into what the script reads (`torch.cuda.max_memory_allocated`), until the script resets it itself.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from peaksight.records.watched import WatchedCard

_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
# How many steps a card that was not in use is not asked again.
_STEPS_BETWEEN_LOOKS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one card: its peaks since the step before, what it holds now, and how often since the start of the process
    the allocator gave its cache back (`retries`) and could not serve a request (`ooms`).
    """

    device: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    retries: int
    ooms: int


class Statistics(Protocol):
    """Where a recorder has its figures from."""

    def statistics(self) -> list[Figures]:
        """Of every card in use, since the last call."""
        ...

    def free_bytes(self, device: int) -> int:
        """Of a card in use, as the driver says."""
        ...

    def card(self, device: int) -> WatchedCard:
        """Which one it is."""
        ...


class CudaStatistics:
    """Those of `torch.cuda`, without a card in use as long as the script does not use CUDA."""

    def __init__(self) -> None:
        """No card is in use."""
        self._peaks: _Peaks | None = None
        self._in_use: list[int] = []
        self._next_look = 0

    def statistics(self) -> list[Figures]:
        """Of every card in use, since the last call."""
        if not self._is_initialized():
            return []
        if self._peaks is None:
            self._peaks = _peaks()
        self._look(self._peaks)
        return [self._peaks.of_step(device) for device in self._in_use]

    def free_bytes(self, device: int) -> int:
        """Of a card in use, as the driver says."""
        free: int = _cuda().mem_get_info(device)[0]
        return free

    def card(self, device: int) -> WatchedCard:
        """Which one it is."""
        cuda = _cuda()
        return WatchedCard(
            device=device,
            name=cuda.get_device_name(device),
            total_bytes=cuda.mem_get_info(device)[1],
            torch=str(sys.modules["torch"].__version__),  # of a class of its own
            settings=next((os.environ[name] for name in _SETTINGS if os.environ.get(name)), ""),
        )

    def _is_initialized(self) -> bool:
        cuda = sys.modules.get("torch.cuda")
        return cuda is not None and cuda.is_initialized()

    def _look(self, peaks: "_Peaks") -> None:
        """Find the cards that have memory reserved, seldom."""
        if self._next_look == 0:
            self._in_use = [device for device in range(_cuda().device_count()) if peaks.is_used(device)]
            self._next_look = _STEPS_BETWEEN_LOOKS if self._in_use else 1
        self._next_look -= 1


def _cuda() -> Any:
    return sys.modules["torch"].cuda


def _peaks() -> "_Peaks":
    """Those of this process, for good: what was reset once has to be put back as long as the script may read it."""
    from peaksight.live.torch_private import replace_statistics, statistics_functions  # once there is torch

    read, reset = statistics_functions()
    before = getattr(read, "__self__", None)
    if isinstance(before, _Peaks):
        return before
    peaks = _Peaks(read, reset)
    replace_statistics(peaks.read, peaks.reset)
    return peaks


class _Peaks:
    """The peaks of a step beside those that the script sees: `read` and `reset` are what it calls."""

    def __init__(self, read: Callable[[int], dict[str, Any]], reset: Callable[[int], None]) -> None:
        self._kept: dict[int, list[int]] = {}  # in the order of `_places`
        self._places: list[tuple[str, str]] = []  # the first key and, where there are pools, the second one
        self._before_reset: dict[int, tuple[int, int]] = {}
        self._read, self._reset = read, reset

    def is_used(self, device: int) -> bool:
        return bool(self._read(device)["reserved_bytes"]["all"]["peak"])

    def of_step(self, device: int) -> Figures:
        """Its figures; the next step begins."""
        found = self._read(device)
        allocated, reserved = found["allocated_bytes"]["all"], found["reserved_bytes"]["all"]
        before = self._before_reset.pop(device, (0, 0))
        self._keep(device, [counts["peak"] for counts in self._with_peaks(found)])
        self._reset(device)
        return Figures(
            device=device,
            peak_allocated_bytes=max(allocated["peak"], before[0]),
            peak_reserved_bytes=max(reserved["peak"], before[1]),
            allocated_bytes=allocated["current"],
            reserved_bytes=reserved["current"],
            retries=found["num_alloc_retries"],
            ooms=found["num_ooms"],
        )

    def read(self, device: int) -> dict[str, Any]:
        """The statistics as they would be if nobody but the script had reset anything."""
        found = self._read(device)
        if kept := self._kept.get(device):
            for counts, peak in zip(self._with_peaks(found), kept, strict=True):
                counts["peak"] = max(counts["peak"], peak)
        return found

    def _with_peaks(self, found: Mapping[str, Any]) -> list[dict[str, int]]:
        """Every dictionary in `found` that counts a peak; torch always fills it alike."""
        if not self._places:
            self._places = list(_places(found))
        return [found[name][pool] if pool else found[name] for name, pool in self._places]

    def _keep(self, device: int, peaks: list[int]) -> None:
        kept = self._kept.get(device)
        if kept != peaks:
            self._kept[device] = peaks if kept is None else list(map(max, kept, peaks))

    def reset(self, device: int) -> None:
        """The script begins to look for peaks anew, in the middle of a step."""
        found = self._read(device)
        before = self._before_reset.get(device, (0, 0))
        peaks = found["allocated_bytes"]["all"]["peak"], found["reserved_bytes"]["all"]["peak"]
        self._before_reset[device] = (max(before[0], peaks[0]), max(before[1], peaks[1]))
        self._kept.pop(device, None)
        self._reset(device)


def _places(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where in `found` a peak is counted: for the whole of a name, or for each of its pools."""
    for name, inner in found.items():
        if isinstance(inner, dict):
            pools = [""] if "peak" in inner else list(inner) if "all" in inner else []
            yield from ((name, pool) for pool in pools)


def host_bytes() -> Callable[[], int]:
    """Measures the memory of this process in use (RSS)."""
    import psutil

    process = psutil.Process()
    return lambda: process.memory_info().rss
