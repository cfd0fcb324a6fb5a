"""The addresses of segments, where no trace tells the real ones."""

from bisect import bisect_right, insort
from typing import Protocol

from peaksight.allocator.sizes import ROUND_LARGE, round_up
from peaksight.units import MIB

_RANGE = 32 * MIB

# From an address to another, which is behind it.
_Span = tuple[int, int]


class SegmentAddresses(Protocol):
    """At which address each segment lies."""

    def __call__(self, size: int) -> int:
        """The base address of a new segment of `size` bytes."""

    def release(self, address: int, size: int) -> None:
        """The segment at `address` is given back."""


class DriverAddresses:
    """Gives addresses in the order in which the CUDA driver does.

    Seen in 34 traces of an H100: the driver takes ranges of a multiple of 32 MiB, each below the last, and
    what a segment leaves of its range serves later segments, lowest address first. This foretells 96 % of the
    addresses there; the others follow from memory of the process that is no segment.

    So it is with what a segment leaves that is given back. A range that is free as a whole is the driver's again, which
    takes new ones where there is room for them, at the highest address (six traces of an H200, 2026-11-30).
    """

    def __init__(self, top: int = 1 << 47) -> None:
        """Start below the address `top`."""
        self._bases: list[int] = []
        self._ends: dict[int, int] = {}
        self._rests: list[_Span] = []
        self._gaps: list[_Span] = [(0, top)]

    def __call__(self, size: int) -> int:
        """The base address of a new segment of `size` bytes."""
        size = round_up(size, ROUND_LARGE)
        start, end = self._take_rest(size) or self._take_range(size)
        if start + size < end:
            insort(self._rests, (start + size, end))
        return start

    def release(self, address: int, size: int) -> None:
        """The segment of `size` bytes at `address` is given back."""
        base = self._bases[bisect_right(self._bases, address) - 1]
        in_range = [rest for rest in self._rests if base <= rest[0] < self._ends[base]]
        start, end = _joined((address, address + round_up(size, ROUND_LARGE)), self._rests, in_range)
        if (start, end) == (base, self._ends[base]):
            self._give_back(base)
        else:
            insort(self._rests, (start, end))

    def _take_rest(self, size: int) -> _Span | None:
        for rest in self._rests:
            if rest[1] - rest[0] >= size:
                self._rests.remove(rest)
                return rest
        return None

    def _take_range(self, size: int) -> _Span:
        size = round_up(size, _RANGE)
        gap = next(gap for gap in reversed(self._gaps) if gap[1] - gap[0] >= size)
        self._gaps.remove(gap)
        base = gap[1] - size
        if gap[0] < base:
            insort(self._gaps, (gap[0], base))
        insort(self._bases, base)
        self._ends[base] = gap[1]
        return base, gap[1]

    def _give_back(self, base: int) -> None:
        self._bases.remove(base)
        insort(self._gaps, _joined((base, self._ends.pop(base)), self._gaps, self._gaps))


def _joined(span: _Span, spans: list[_Span], others: list[_Span]) -> _Span:
    """`span` with those of `others` that touch it, which are taken out of `spans`."""
    start, end = span
    for other in [other for other in others if other[1] == start or other[0] == end]:
        spans.remove(other)
        start, end = min(start, other[0]), max(end, other[1])
    return start, end
