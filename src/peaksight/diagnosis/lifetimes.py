"""What the peak would be if some blocks had not been there, or had been given back earlier."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from peaksight.records import Allocation, Capture


class Lifetimes:
    """The course of allocated bytes over one run, and what it would be without some of its blocks.

    Only lifetimes are looked at: what else a change of the script would do to the run is not known.
    """

    def __init__(self, capture: Capture) -> None:
        """The births, in the order of their ticks, with what was allocated right after each."""
        self._allocations = capture.allocations
        self._births = [allocation.born for allocation in capture.allocations]
        deaths = sorted((a.died, -a.allocated_bytes) for a in capture.allocations if a.died is not None)
        births = [(a.born, a.allocated_bytes) for a in capture.allocations]
        events = sorted(births + deaths)
        levels = dict(zip((tick for tick, _ in events), accumulate(size for _, size in events), strict=True))
        self._levels = [levels[tick] for tick in self._births]
        self.peak_bytes = max(self._levels, default=0)

    @property
    def levels(self) -> Iterator[tuple[Allocation, int]]:
        """Each allocation, with what was allocated right after it."""
        return zip(self._allocations, self._levels, strict=True)

    def with_sizes(self, sizes: Mapping[Allocation, int]) -> int:
        """The peak in bytes if each allocation of `sizes` had only so many there."""
        changes = [0] * (len(self._births) + 1)
        for allocation, size in sizes.items():
            self._change(changes, allocation, allocation.born, size - allocation.allocated_bytes)
        return self._highest(changes)

    def without(self, allocations: Iterable[Allocation]) -> int:
        """The peak in bytes if `allocations` had never been made."""
        return self._with_shorter({allocation: allocation.born for allocation in allocations})

    def with_earlier_frees(self, frees: Mapping[Allocation, int]) -> int:
        """The peak in bytes if each allocation of `frees` had been given back at its tick there, if not before."""
        return self._with_shorter({a: tick for a, tick in frees.items() if a.died is None or tick < a.died})

    def with_gaps(self, gaps: Mapping[Allocation, Sequence[tuple[int, int]]]) -> int:
        """The peak in bytes if each allocation were not there from the first tick to the second of each of its gaps."""
        changes = [0] * (len(self._births) + 1)
        for allocation, spans in gaps.items():
            for first, end in spans:
                self._change(changes, allocation, first, -allocation.allocated_bytes)
                if allocation.died is None or end < allocation.died:
                    self._change(changes, allocation, end, allocation.allocated_bytes)
        return self._highest(changes)

    def _with_shorter(self, ends: Mapping[Allocation, int]) -> int:
        """The peak if each allocation were gone from its tick in `ends` on."""
        changes = [0] * (len(self._births) + 1)
        for allocation, end in ends.items():
            self._change(changes, allocation, end, -allocation.allocated_bytes)
        return self._highest(changes)

    def _change(self, changes: list[int], allocation: Allocation, since: int, num_bytes: int) -> None:
        """Add `num_bytes` to what is allocated from the tick `since` to the end of `allocation`."""
        changes[bisect_left(self._births, since)] += num_bytes
        if allocation.died is not None:
            changes[bisect_left(self._births, allocation.died)] -= num_bytes

    def _highest(self, changes: list[int]) -> int:
        pairs = zip(self._levels, accumulate(changes), strict=False)
        return max((level + change for level, change in pairs), default=0)
