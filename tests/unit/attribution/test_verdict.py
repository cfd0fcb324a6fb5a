"""Fits, does not fit, or too close to say."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import first_failure, judge
from peaksight.attribution.replayed import replay_capture
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall, Approximation, Phase
from peaksight.units import GIB, MIB

H100 = find_card("h100-80gb")
T4 = find_card("t4")


def h100_with(usable_bytes):
    """An H100 of which the process can take `usable_bytes` beside its context."""
    return room_on(replace(H100, total_bytes=usable_bytes + H100.context_bytes))


def test_a_small_run_fits():
    """Far below the limit no unknown matters."""
    verdict = judge(capture_of(allocation_of(GIB, born=1)), room_on(H100))

    assert (verdict.fits, verdict.oom, verdict.retries) == (True, None, None)


def test_the_failure_that_ended_the_run_is_named():
    """Not one that the script got over; with what was alive at that moment."""
    over = failure_of(8 * GIB, tick=1, source="train.py:7")
    backward = {"phase": Phase.BACKWARD, "source": "train.py:42", "backward_source": "train.py:50"}
    fatal = failure_of(2 * GIB, tick=2, step=3, **backward)
    capture = capture_of(
        allocation_of(GIB, born=1, source="train.py:3"), allocation_of(MIB, born=3), failures=(over, fatal), fatal=1
    )
    oom = judge(capture, h100_with(2 * GIB)).oom

    assert (oom.requested_bytes, oom.step, oom.phase) == (2 * GIB, 3, Phase.BACKWARD)
    assert (oom.at, oom.backward_at) == ("train.py:42", "train.py:50")
    assert [(holder.source, holder.bytes) for holder in oom.live] == [("train.py:3", GIB)]


def test_a_failure_is_sure_when_the_largest_room_would_not_help():
    """The unlimited run decides that."""
    failed = capture_of(failures=(failure_of(3 * GIB, tick=0),), fatal=0)
    room = room_on(T4)

    def fits(num_bytes):
        return judge(failed, room, capture_of(allocation_of(num_bytes, born=1))).fits

    assert fits(room.usable_bytes + room.context_margin_bytes // 2) is None
    assert fits(2 * room.usable_bytes) is False


def test_a_close_fit_is_not_sure():
    """Within what the context of an unmeasured card may differ by."""
    room = room_on(T4)

    def fits(num_bytes):
        return judge(capture_of(allocation_of(num_bytes, born=1)), room).fits

    assert fits(room.usable_bytes - room.context_margin_bytes // 2) is None
    assert fits(room.usable_bytes // 2) is True


def test_cached_memory_is_given_back_before_failing():
    """Reserved beyond the limit on an unlimited card, yet it fits: the allocator releases its cache and retries."""
    capture = capture_of(allocation_of(GIB, born=1, died=2), allocation_of(GIB + MIB, born=3))

    assert capture.peak_reserved_bytes > 2 * GIB
    assert first_failure(capture, GIB + 100 * MIB) is None


@given(
    st.lists(st.integers(min_value=2, max_value=600), min_size=1, max_size=12),
    st.integers(min_value=0, max_value=200),
    st.integers(min_value=-40, max_value=40),
)
def test_what_is_seen_at_once_is_what_a_replay_shows(sizes, outside, over):
    """Around the limit at which the card is full: blocks that outlive the next, and memory of a library."""
    allocations = [allocation_of(size * MIB, born=2 * i + 2, died=2 * i + 5) for i, size in enumerate(sizes)]
    call = AllocatorCall(tick=1, action=Action.OUTSIDE, bytes=outside * MIB, what="cuBLAS")
    capture = capture_of(*allocations, calls=(call,), outside_bytes=outside * MIB)
    limit = max(MIB, capture.peak_reserved_bytes + (outside + over) * MIB)
    replayed = replay_capture(capture, limit_bytes=limit)

    assert judge(capture, h100_with(limit)).fits is (True if replayed.failure is None else None)


@given(
    st.lists(st.integers(min_value=2, max_value=600), min_size=2, max_size=12),
    st.integers(min_value=0, max_value=200),
)
def test_the_head_room_ends_the_retries_and_less_does_not(sizes, outside):
    """Of a run that retries on a card of a GiB: exactly so much more is what it takes."""
    allocations = [allocation_of(size * MIB, born=2 * i + 2, died=2 * i + 3) for i, size in enumerate(sizes)]
    outside_memory = AllocatorCall(tick=1, action=Action.OUTSIDE, bytes=outside * MIB, what="cuBLAS")
    step = replace(step_of(1, 1, 2 * len(sizes) + 1), num_alloc_retries=1)
    capture = capture_of(*allocations, steps=(step,), calls=(outside_memory,))
    room = h100_with(GIB)
    enough = room.usable_bytes + judge(capture, room).retries.head_room_bytes
    whole, less = (replay_capture(capture, limit_bytes=limit) for limit in (enough, enough - 4 * MIB))

    assert (whole.failure, whole.num_alloc_retries) == (None, 0)
    assert less.failure is not None or less.num_alloc_retries > 0


def test_retries_are_counted_by_step():
    """Only those steps are named in which the card was full."""
    step = replace(step_of(1, 1, 3), num_alloc_retries=2)
    capture = capture_of(
        allocation_of(GIB, born=1, died=2), allocation_of(GIB + 2 * MIB, born=3), steps=(step, step_of(2, 4, 4))
    )
    retries = judge(capture, h100_with(GIB + 100 * MIB)).retries

    assert (retries.count, retries.steps) == (2, (1,))


def test_the_head_room_of_what_the_script_allows_itself():
    """A card with room to spare does not help where `set_per_process_memory_fraction` is what is full."""
    step = replace(step_of(1, 1, 4), num_alloc_retries=1)
    allowed = AllocatorCall(tick=1, action=Action.ALLOWED, bytes=GIB + 100 * MIB)
    capture = capture_of(
        allocation_of(GIB, born=2, died=3), allocation_of(GIB + 2 * MIB, born=4), steps=(step,), calls=(allowed,)
    )

    assert judge(capture, room_on(H100)).retries.head_room_bytes == GIB - 98 * MIB


@pytest.mark.parametrize(("slug", "fits"), [("linalg-workspace", None), ("other-process", None), ("draws", True)])
def test_only_unknown_workspaces_make_the_answer_doubtful(slug, fits):
    """A workspace of unknown size may take the last GiB; an approximation without memory may not."""
    unknown = Approximation(slug=slug, what="", bytes=None)
    capture = capture_of(allocation_of(2 * GIB, born=1), not_simulated=(unknown,))

    verdict = judge(capture, h100_with(2 * GIB + 512 * MIB))

    assert verdict.fits is fits
    assert verdict.undecided == (() if fits else (slug,))


@pytest.mark.parametrize(("at_most_bytes", "fits"), [(GIB, True), (3 * GIB, None)])
def test_what_is_unknown_up_to_a_bound(at_most_bytes, fits):
    """It makes the answer doubtful where the card has not so much to spare."""
    unknown = Approximation(slug="unknown-operator", what="", bytes=None, at_most_bytes=at_most_bytes)
    capture = capture_of(allocation_of(2 * GIB, born=1), not_simulated=(unknown,))

    assert judge(capture, h100_with(4 * GIB)).fits is fits


@pytest.mark.parametrize("finished", ["failed", "interrupted", "untrained"])
def test_a_run_cut_short_gives_no_verdict(finished):
    """It may still have grown."""
    assert judge(capture_of(allocation_of(MIB, born=1), finished=finished), room_on(H100)).fits is None


def test_memory_of_another_process_has_no_bound():
    """So that nothing surely fits."""
    unknown = Approximation(slug="other-process", what="", bytes=None)

    assert judge(capture_of(allocation_of(MIB, born=1), not_simulated=(unknown,)), h100_with(GIB)).fits is None
