"""How much of a measured reserved peak hangs on the addresses that the driver gave.

`python -m benchmarks.accuracy.addresses TRACE...` repeats the allocations and frees of recorded traces, once with the
segments where they were and once for each rule that could have placed them. Of free blocks of one size the allocator
takes the one with the lowest address, so that the same requests in the same order can need more segments or fewer.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks.tables import table
from peaksight.allocator import CachingAllocator, TraceEvent, read_trace, replay
from peaksight.allocator.addresses import DriverAddresses, SegmentAddresses
from peaksight.allocator.sizes import ROUND_LARGE, round_up
from peaksight.units import GIB

RULES: dict[str, Callable[[], SegmentAddresses]] = {
    "as the driver": DriverAddresses,
    "upwards": lambda: _InOneRow(step=1),
    "downwards": lambda: _InOneRow(step=-1),
}


class _InOneRow:
    """Each segment above the one before, or with a `step` of -1 below it."""

    def __init__(self, *, step: int) -> None:
        self._step = step
        self._next = 1 << 46

    def __call__(self, size: int) -> int:
        address = self._next
        self._next += self._step * round_up(size, ROUND_LARGE)
        return address if self._step > 0 else self._next

    def release(self, address: int, size: int) -> None:
        """What was given back is not given again."""


def main() -> None:
    """A row a trace."""
    rows = [_row(Path(file)) for file in sys.argv[1:]]
    print(table(("trace", "measured", *RULES), rows))


def reserved_bytes(events: Iterable[TraceEvent], addresses: SegmentAddresses) -> int:
    """The reserved peak of `events` with segments at `addresses`."""
    allocator = CachingAllocator(segment_address=addresses)
    alive = {}
    for event in events:
        if event.action == "alloc":
            alive[event.address] = allocator.malloc(event.nbytes, event.stream)
        elif event.action == "free_requested" and event.address in alive:
            allocator.free_requested(alive[event.address])
        elif event.action == "free_completed" and event.address in alive:
            allocator.free_completed(alive.pop(event.address))
        elif event.action == "segment_free":
            allocator.release_cached_blocks()
    return allocator.peak_reserved_bytes


def _row(file: Path) -> tuple[str, ...]:
    events = read_trace(file)
    measured = replay(events).peak_reserved
    return (file.name.split(".")[0], f"{measured / GIB:.3f}", *_errors(events, measured))


def _errors(events: list[TraceEvent], measured: int) -> Iterator[str]:
    for rule in RULES.values():
        yield f"{reserved_bytes(events, rule()) / measured - 1:+.2%}"


if __name__ == "__main__":
    main()
