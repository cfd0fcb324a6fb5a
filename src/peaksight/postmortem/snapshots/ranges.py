"""The address ranges that an allocator has from the device."""

from bisect import bisect_right, insort
from collections.abc import Iterator


class Ranges:
    """Disjoint ranges by their start.

    A segment of cudaMalloc stays by itself, for no block reaches over its end. Pages of an expandable segment join
    those that they touch.
    """

    def __init__(self) -> None:
        """None yet."""
        self.total_bytes = 0
        self._starts: list[int] = []
        self._ends: dict[int, tuple[int, bool]] = {}

    def __iter__(self) -> Iterator[tuple[int, int, bool]]:
        """Start, end, and whether it is expandable, by address."""
        return ((start, *self._ends[start]) for start in self._starts)

    def add(self, start: int, nbytes: int, *, is_expandable: bool) -> None:
        """Add a range; what overlaps it was given back without a word and is taken out first."""
        if nbytes <= 0:
            return
        self.remove(start, nbytes)
        self.total_bytes += nbytes
        end = start + nbytes
        if is_expandable:
            before, after = self._covering(start - 1), self._ends.get(end)
            if before is not None and self._ends[before] == (start, True):
                self._drop(before)
                start = before
            if after is not None and after[1]:
                self._drop(end)
                end = after[0]
        insort(self._starts, start)
        self._ends[start] = end, is_expandable

    def remove(self, start: int, nbytes: int) -> None:
        """Take a range out, also from the middle of others."""
        end = start + nbytes
        for first in self._touching(start, end):
            last, is_expandable = self._ends[first]
            self._drop(first)
            self.total_bytes -= min(last, end) - max(first, start)
            for kept_start, kept_end in ((first, start), (end, last)):
                if kept_start < kept_end:
                    insort(self._starts, kept_start)
                    self._ends[kept_start] = kept_end, is_expandable

    def covering(self, address: int) -> tuple[int, int, bool] | None:
        """The range that has `address`, as in `__iter__`; None if none has."""
        start = self._covering(address)
        return None if start is None else (start, *self._ends[start])

    def _covering(self, address: int) -> int | None:
        index = bisect_right(self._starts, address) - 1
        return self._starts[index] if index >= 0 and self._ends[self._starts[index]][0] > address else None

    def _touching(self, start: int, end: int) -> list[int]:
        index = max(0, bisect_right(self._starts, start) - 1)
        found = []
        while index < len(self._starts) and self._starts[index] < end:
            if self._ends[self._starts[index]][0] > start:
                found.append(self._starts[index])
            index += 1
        return found

    def _drop(self, start: int) -> None:
        del self._starts[bisect_right(self._starts, start) - 1]
        del self._ends[start]
