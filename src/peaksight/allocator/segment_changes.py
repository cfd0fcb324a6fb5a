"""What an allocator took from its device and gave back, found by looking at its segments before and after."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from peaksight.allocator.caching import CachingAllocator


class _Range(NamedTuple):
    """`size` bytes at `address` of a segment of `stream`; those of an expandable one grow and shrink."""

    address: int
    size: int
    stream: int
    is_expandable: bool

    @property
    def end(self) -> int:
        return self.address + self.size


class SegmentChange(NamedTuple):
    """`segment_alloc`, `segment_free`, `segment_map` or `segment_unmap` of `size` bytes at `address`."""

    action: str
    address: int
    size: int
    stream: int


class SegmentChanges:
    """Compares the segments only when the device was asked for something, which is rare."""

    def __init__(self, allocator: CachingAllocator) -> None:
        """Changes count from here on."""
        self._allocator = allocator
        self._num_calls = allocator.num_device_calls
        self._before = self._ranges()

    def since_last_time(self) -> list[SegmentChange]:
        """What changed since the last call: first what was given back, then what was taken."""
        if self._allocator.num_device_calls == self._num_calls:
            return []
        before, now = self._before, self._ranges()
        self._num_calls, self._before = self._allocator.num_device_calls, now
        given_back = [_change("segment_unmap", "segment_free", piece) for piece in _beyond(before, now)]
        return given_back + [_change("segment_map", "segment_alloc", piece) for piece in _beyond(now, before)]

    def _ranges(self) -> frozenset[_Range]:
        return frozenset(
            _Range(segment.address, segment.total_size, segment.stream, segment.is_expandable)
            for segment in self._allocator.segments()
        )


def _change(of_expandable: str, of_classic: str, piece: _Range) -> SegmentChange:
    action = of_expandable if piece.is_expandable else of_classic
    return SegmentChange(action, piece.address, piece.size, piece.stream)


def _beyond(these: frozenset[_Range], those: frozenset[_Range]) -> Iterator[_Range]:
    """What `these` cover and `those` do not, by address: whole segments, or pieces of expandable ones."""
    others = sorted(those - these)
    for own in sorted(these - those):
        yield from _pieces_beyond(own, others) if own.is_expandable else (own,)


def _pieces_beyond(own: _Range, others: Iterable[_Range]) -> Iterator[_Range]:
    start = own.address
    for other in others:
        if other.is_expandable and other.end > start and other.address < own.end:
            if other.address > start:
                yield own._replace(address=start, size=other.address - start)
            start = other.end
    if start < own.end:
        yield own._replace(address=start, size=own.end - start)
