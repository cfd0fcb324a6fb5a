"""Runs a recorded trace through the simulated allocator, and checks every address."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass

from peaksight.allocator.addresses import DriverAddresses
from peaksight.allocator.blocks import Block
from peaksight.allocator.caching import CachingAllocator
from peaksight.allocator.settings import Settings
from peaksight.allocator.trace import TraceEvent

# Above every address of a real device.
_UNUSED_ADDRESSES = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the simulated allocator did on a trace; peaks in bytes.

    `segments` counts how often memory was asked of the device, by cudaMalloc or by mapping pages.
    `wrong_addresses` of the `num_allocations` got another address than in the trace. `num_unknown_frees` free
    blocks from before the trace began.
    """

    peak_allocated: int
    peak_reserved: int
    segments: int
    num_allocations: int
    wrong_addresses: int
    num_unknown_frees: int


def replay(events: Iterable[TraceEvent]) -> Replay:
    """Repeat the allocations and frees of a trace, with the addresses of its segments.

    Limitations: segments are released where the trace releases them, all free ones at once, so a trace recorded
    with `garbage_collection_threshold` or `max_split_size_mb` is not repeated exactly. Private pools are ignored.
    """
    events = list(events)
    replayer = _Replayer(expandable_segments=any(event[0] == "segment_map" for event in events))
    for action, address, nbytes, stream in events:
        step = replayer.steps.get(action)
        if step is not None:
            step(address, nbytes, stream)
    return replayer.result()


class _AnnouncedAddresses:
    """The address that the trace announced for the next segment, or else one that no trace uses.

    A trace that begins in the middle of a run can announce an address that the simulation still holds: it counts as
    not announced. `held` are the ranges of the segments, sorted.
    """

    def __init__(self, *, expandable_segments: bool) -> None:
        self.announced: tuple[int, int] | None = None
        self.held: list[tuple[int, int]] = []
        self._expandable_segments = expandable_segments
        self._fallback = DriverAddresses(top=_UNUSED_ADDRESSES)

    def __call__(self, size: int) -> int:
        if self.announced is None:
            return self._fallback(size)
        address, nbytes = self.announced
        # Of an expandable segment, only the pages are really there: the address space of another may begin in its.
        end = address + (nbytes if self._expandable_segments else size)
        if self._is_held(address, end):
            return self._fallback(size)
        insort(self.held, (address, end))
        return address

    def release(self, address: int, size: int) -> None:
        """The trace tells where the next ones lie."""

    def _is_held(self, start: int, end: int) -> bool:
        index = bisect_left(self.held, (end,))
        return index > 0 and self.held[index - 1][1] > start


class _Replayer:
    def __init__(self, *, expandable_segments: bool) -> None:
        self._addresses = _AnnouncedAddresses(expandable_segments=expandable_segments)
        self._allocator = CachingAllocator(
            settings=Settings(expandable_segments=expandable_segments), segment_address=self._addresses
        )
        self._blocks: dict[int, Block] = {}
        self._awaiting_free: dict[int, Block] = {}
        self._num_allocations = self._wrong_addresses = self._num_unknown_frees = 0
        self.steps = {
            "alloc": self._alloc,
            "free_requested": self._free_requested,
            "free_completed": self._free_completed,
            "segment_alloc": self._announce,
            "segment_map": self._announce,
            "segment_free": self._release,
            "segment_unmap": self._release,
        }

    def result(self) -> Replay:
        return Replay(
            peak_allocated=self._allocator.peak_allocated_bytes,
            peak_reserved=self._allocator.peak_reserved_bytes,
            segments=self._allocator.memory_stats()["num_device_alloc"],
            num_allocations=self._num_allocations,
            wrong_addresses=self._wrong_addresses,
            num_unknown_frees=self._num_unknown_frees,
        )

    def _alloc(self, address: int, nbytes: int, stream: int) -> None:
        block = self._allocator.malloc(nbytes, stream)
        self._addresses.announced = None
        self._blocks[address] = block
        self._num_allocations += 1
        self._wrong_addresses += block.address != address

    def _free_requested(self, address: int, nbytes: int, stream: int) -> None:
        block = self._blocks.pop(address, None)
        if block is not None:
            self._allocator.free_requested(block)
            self._awaiting_free[address] = block

    def _free_completed(self, address: int, nbytes: int, stream: int) -> None:
        block = self._awaiting_free.pop(address, None)
        if block is None:
            self._num_unknown_frees += 1
        else:
            self._allocator.free_completed(block)

    def _announce(self, address: int, nbytes: int, stream: int) -> None:
        # One allocation can map several ranges; a new segment begins with the first.
        if self._addresses.announced is None:
            self._addresses.announced = (address, nbytes)

    def _release(self, address: int, nbytes: int, stream: int) -> None:
        if self._allocator.release_cached_blocks():
            self._addresses.held = [
                (segment.address, segment.address + segment.total_size) for segment in self._allocator.segments()
            ]
