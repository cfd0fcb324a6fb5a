"""How much the peak depends on when memory is given back that a stream, or NCCL, may still use."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from peaksight.attribution.replayed import replay_capture
from peaksight.records import Allocation, Approximation, Capture

_Change = Callable[[Allocation], Allocation]


def with_late_release(capture: Capture) -> Capture:
    """`capture` whose approximations `bucket-release` and `record-stream` have their bound.

    Each is gone where the peak stays the same. The bound is found by a replay in which each `late_free` block lives,
    and each block that other streams used is not reusable, until the end of the step that it died in. In steps of some
    0.01 s that was measured for buckets, mostly they died earlier.
    """
    settled = (_settled(note, capture) for note in capture.not_simulated)
    return replace(capture, not_simulated=tuple(note for note in settled if note is not None))


def _settled(note: Approximation, capture: Capture) -> Approximation | None:
    if note.slug == "bucket-release":
        most = _replayed(capture, _freed_at_end_of_step(capture))
        differs = max(most) > 0
    elif note.slug == "record-stream":
        most = _replayed(capture, _reusable_at_end_of_step(capture))
        differs = most != _replayed(capture, lambda allocation: replace(allocation, reusable=None))
    else:
        return note
    # What still grows as the run is left has no bound.
    is_open = note.slug == "record-stream" and capture.finished == "unsteady"
    return replace(note, at_most_bytes=None if is_open else max(0, *most)) if differs else None


def _replayed(capture: Capture, change: _Change) -> tuple[int, int]:
    """By how much higher the peaks are, allocated and reserved, where each allocation is as `change` makes it."""
    changed = replace(capture, allocations=tuple(map(change, capture.allocations)))
    replayed = replay_capture(changed, limit_bytes=None)
    return (
        replayed.peak_allocated_bytes - capture.peak_allocated_bytes,
        replayed.peak_reserved_bytes - capture.peak_reserved_bytes,
    )


def _freed_at_end_of_step(capture: Capture) -> _Change:
    end_of = _ends(capture)
    return lambda a: replace(a, died=end_of(a.died)) if a.late_free and a.died is not None else a


def _reusable_at_end_of_step(capture: Capture) -> _Change:
    end_of = _ends(capture)

    def change(allocation: Allocation) -> Allocation:
        if allocation.reusable is None or allocation.died is None:
            return allocation
        return replace(allocation, reusable=max(allocation.reusable, end_of(allocation.died)))

    return change


def _ends(capture: Capture) -> Callable[[int], int]:
    """The last tick of the step that a tick is in; a tick after all steps stays."""
    ends = [step.last_tick for step in capture.steps]

    def end_of(tick: int) -> int:
        place = bisect_right(ends, tick)
        return ends[place] if place < len(ends) else tick

    return end_of
