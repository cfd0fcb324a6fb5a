"""How much higher the peak is where NCCL gives back as late as it may what data parallelism reduced."""

from bisect import bisect_right
from dataclasses import replace

from peaksight.attribution.replayed import replay_capture
from peaksight.records import Allocation, Capture

SLUG = "bucket-release"


def with_late_release(capture: Capture) -> Capture:
    """`capture` whose approximation `bucket-release` has its bound, and is gone where the peak stays the same.

    The bound is found by a replay in which each `late_free` block lives until the end of the step that it died in: in
    steps of some 0.01 s that was measured, mostly it died earlier.
    """
    if all(note.slug != SLUG for note in capture.not_simulated):
        return capture
    increase = _increase_bytes(capture)
    notes = (replace(note, at_most_bytes=increase) if note.slug == SLUG else note for note in capture.not_simulated)
    return replace(capture, not_simulated=tuple(note for note in notes if note.slug != SLUG or increase))


def _increase_bytes(capture: Capture) -> int:
    ends = [step.last_tick for step in capture.steps]
    allocations = tuple(_freed_late(a, ends) if a.late_free else a for a in capture.allocations)
    late = replay_capture(replace(capture, allocations=allocations), limit_bytes=None)
    return max(
        0,
        late.peak_allocated_bytes - capture.peak_allocated_bytes,
        late.peak_reserved_bytes - capture.peak_reserved_bytes,
    )


def _freed_late(allocation: Allocation, ends: list[int]) -> Allocation:
    if allocation.died is None:
        return allocation
    place = bisect_right(ends, allocation.died)
    return replace(allocation, died=ends[place]) if place < len(ends) else allocation
