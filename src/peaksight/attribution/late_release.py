"""How much higher the peak is where NCCL gives back as late as it may what data parallelism reduced."""

from bisect import bisect_right
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from peaksight.attribution.replayed import replay_capture
from peaksight.records import Allocation, Capture, Phase

SLUG = "bucket-release"


def with_late_release(capture: Capture) -> Capture:
    """`capture` whose approximation `bucket-release` has its bound, and is gone where the peak stays the same.

    The bound is found by a replay in which each `late_free` block lives until the end of the backward pass that it died
    in, or of the next one: with less than 0.1 s from the end of an all-reduce on, either was measured.
    """
    if all(note.slug != SLUG for note in capture.not_simulated):
        return capture
    increase = _increase_bytes(capture)
    notes = (replace(note, at_most_bytes=increase) if note.slug == SLUG else note for note in capture.not_simulated)
    return replace(capture, not_simulated=tuple(note for note in notes if note.slug != SLUG or increase))


def _increase_bytes(capture: Capture) -> int:
    ends = _last_of_backward_passes(capture)
    allocations = tuple(_freed_late(a, ends) if a.late_free else a for a in capture.allocations)
    late = replay_capture(replace(capture, allocations=allocations), limit_bytes=None)
    return max(
        0,
        late.peak_allocated_bytes - capture.peak_allocated_bytes,
        late.peak_reserved_bytes - capture.peak_reserved_bytes,
    )


def _last_of_backward_passes(capture: Capture) -> list[int]:
    """The last birth of each."""
    runs = groupby(capture.allocations, attrgetter("phase"))
    return [tuple(run)[-1].born for phase, run in runs if phase is Phase.BACKWARD]


def _freed_late(allocation: Allocation, ends: list[int]) -> Allocation:
    if allocation.died is None:
        return allocation
    place = bisect_right(ends, allocation.died)
    return replace(allocation, died=ends[place]) if place < len(ends) else allocation
