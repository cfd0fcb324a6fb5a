"""Why reserved memory is not free: which live blocks keep which segments from being given back."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from peaksight.attribution.categories import Categories
from peaksight.records import Allocation, Capture
from peaksight.records.recording import Fragmentation, HeldSegment, Pin, PinnedSegment, Recording

NUM_SEGMENTS = 20
_NUM_HOLDERS = 3

# A line and a category.
_Holder = tuple[str, str]


def fragmentation(recording: Recording) -> Fragmentation:
    """What was reserved and not allocated at the moment of `recording`, and what kept it.

    A segment is given back as a whole, so one live block keeps all of it. Limitations: of an expandable segment single
    pages can be given back, which the driver hands out in 2 MiB: there `inactive_split_bytes` is an upper bound.
    """
    held = _held(recording.capture, recording.segments)
    reserved = sum(segment.total_bytes for segment in recording.segments)
    allocated = sum(one.held_bytes for one in held)
    partly = _partly_free(held)
    return Fragmentation(
        at_failure=bool(recording.capture.failures),
        reserved_bytes=reserved,
        allocated_bytes=allocated,
        unused_bytes=reserved - allocated,
        inactive_split_bytes=sum(one.free_bytes for one in partly),
        largest_free_bytes=recording.largest_free_bytes,
        num_segments=len(held),
        pins=_pins(partly),
        segments=tuple(one.record() for one in partly[:NUM_SEGMENTS]),
    )


def pins_of(capture: Capture, segments: Sequence[HeldSegment]) -> tuple[Pin, ...]:
    """The lines whose blocks keep `segments` that are partly free, those that keep most alone first."""
    return _pins(_partly_free(_held(capture, segments)))


def _held(capture: Capture, segments: Sequence[HeldSegment]) -> list["_HeldBy"]:
    categories = Categories(capture)
    return [_HeldBy(segment, capture.allocations, categories) for segment in segments]


def _partly_free(held: Iterable["_HeldBy"]) -> list["_HeldBy"]:
    return sorted((one for one in held if one.blocks and one.free_bytes), key=lambda one: -one.free_bytes)


class _HeldBy:
    """One segment, and the blocks that keep it by line and category."""

    def __init__(self, segment: HeldSegment, allocations: Sequence[Allocation], categories: Categories) -> None:
        self.segment = segment
        self.blocks: dict[_Holder, list[int]] = defaultdict(list)
        for place in segment.allocations:
            allocation = allocations[place]
            self.blocks[line_of(allocation), str(categories.of(allocation))].append(allocation.allocated_bytes)
        self.held_bytes = sum(map(sum, self.blocks.values()))
        self.free_bytes = segment.total_bytes - self.held_bytes

    def record(self) -> PinnedSegment:
        largest = sorted(self.blocks, key=lambda holder: -sum(self.blocks[holder]))
        return PinnedSegment(
            address=self.segment.address,
            total_bytes=self.segment.total_bytes,
            free_bytes=self.free_bytes,
            holders=tuple(dict.fromkeys(line for line, _ in largest))[:_NUM_HOLDERS],
        )


def line_of(allocation: Allocation) -> str:
    """The person's line of `allocation`, or the library's, or what is known instead."""
    return allocation.source or allocation.library or ("before the recording" if allocation.born == 0 else "no line")


def named(pin: Pin) -> str:
    """`activation at train.py:20`; a line that is none stands as it is."""
    return f"{pin.category} {'at' if ':' in pin.source else 'with'} {pin.source}"


def _pins(partly: Iterable[_HeldBy]) -> tuple[Pin, ...]:
    """What each line keeps, most first."""
    found: dict[_Holder, list[_HeldBy]] = defaultdict(list)
    for one in partly:
        for holder in one.blocks:
            found[holder].append(one)
    pins = (_pin(holder, segments) for holder, segments in found.items())
    return tuple(sorted(pins, key=lambda pin: (-pin.alone_bytes, -pin.kept_bytes, pin.source, pin.category)))


def _pin(holder: _Holder, segments: list[_HeldBy]) -> Pin:
    source, category = holder
    blocks = [nbytes for one in segments for nbytes in one.blocks[holder]]
    return Pin(
        source=source,
        category=category,
        held_bytes=sum(blocks),
        count=len(blocks),
        num_segments=len(segments),
        kept_bytes=sum(one.free_bytes for one in segments),
        alone_bytes=sum(one.free_bytes for one in segments if len(one.blocks) == 1),
    )
