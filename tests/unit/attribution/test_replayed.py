"""A capture's calls on a card of another size."""

import pytest

from helpers import allocation_of, capture_of, failure_of
from peaksight.attribution import replay_capture
from peaksight.records import Action, AllocatorCall
from peaksight.units import GIB, MIB


def test_the_same_card_reserves_the_same():
    """Without a limit nothing fails."""
    capture = capture_of(allocation_of(GIB, born=1, died=3), allocation_of(30 * MIB, born=2))
    replayed = replay_capture(capture, limit_bytes=None)

    assert replayed.failure is None
    assert replayed.peak_reserved_bytes == capture.peak_reserved_bytes
    assert replayed.num_alloc_retries == 0


def test_a_smaller_card_fails_at_the_allocation():
    """And tells what the allocator held."""
    capture = capture_of(allocation_of(GIB, born=1), allocation_of(2 * GIB, born=2, source="train.py:9"))
    failure = replay_capture(capture, limit_bytes=2 * GIB).failure

    assert failure.event.source == "train.py:9"
    assert failure.error.allocated_bytes == GIB


def test_the_script_emptied_the_cache():
    """So a segment of another size is made without a retry."""
    emptied = AllocatorCall(tick=3, action=Action.EMPTY_CACHE)
    capture = capture_of(allocation_of(GIB, born=1, died=2), allocation_of(GIB + 2 * MIB, born=4), calls=(emptied,))
    replayed = replay_capture(capture, limit_bytes=GIB + 100 * MIB)

    assert (replayed.failure, replayed.num_alloc_retries) == (None, 0)


def test_libraries_take_their_share():
    """Outside the allocator, out of the same card; a call that does not fit is a failure without an allocation."""
    handle = AllocatorCall(tick=1, action=Action.OUTSIDE, bytes=64 * MIB, what="cublas")
    capture = capture_of(allocation_of(GIB, born=2), calls=(handle,))

    assert replay_capture(capture, limit_bytes=None).needed_bytes == GIB + 64 * MIB
    assert replay_capture(capture, limit_bytes=GIB + 40 * MIB).failure.event.born == 2
    assert replay_capture(capture, limit_bytes=MIB).failure.event is handle


@pytest.mark.parametrize(("step", "born"), [(1, None), (2, 1)])
def test_an_attempt_that_fails_anyway_may_fail_earlier(step, born):
    """Of a step in which the script got over a failure only what came after that has to fit, not of another step."""
    failed = failure_of(2 * GIB, tick=4, step=step)
    call = AllocatorCall(tick=4, action=Action.FAILED, bytes=2 * GIB)
    attempt = allocation_of(3 * GIB, born=1, died=5), allocation_of(MIB, born=2, died=3)
    capture = capture_of(*attempt, allocation_of(GIB, born=6), calls=(call,), failures=(failed,))
    replayed = replay_capture(capture, limit_bytes=2 * GIB)

    assert (replayed.failure and replayed.failure.event.born) == born
    assert replayed.peak_reserved_bytes == (GIB if born is None else 0)


def test_what_follows_an_attempt_has_to_fit():
    """Also in the same step."""
    failed = failure_of(2 * GIB, tick=2)
    attempt = allocation_of(3 * GIB, born=1, died=3)
    capture = capture_of(attempt, allocation_of(3 * GIB, born=4), failures=(failed,))

    assert replay_capture(capture, limit_bytes=2 * GIB).failure.event.born == 4


def test_a_smaller_card_does_without_what_is_dispensable():
    """A workspace of cuDNN, say; what comes after it has to fit."""
    workspace = allocation_of(2 * GIB, born=1, died=2, dispensable=True)
    capture = capture_of(workspace, allocation_of(GIB, born=3))

    assert replay_capture(capture, limit_bytes=GIB + 10 * MIB).failure is None
    assert replay_capture(capture, limit_bytes=MIB).failure.event.born == 3


def test_a_larger_card_has_what_was_done_without():
    """For as long as the operator ran."""
    call = AllocatorCall(tick=2, action=Action.DONE_WITHOUT, bytes=2 * GIB, what="aten::convolution")
    capture = capture_of(allocation_of(GIB, born=1), calls=(call,))

    assert replay_capture(capture, limit_bytes=None).needed_bytes == 3 * GIB
    assert replay_capture(capture, limit_bytes=GIB + 10 * MIB).failure is None


@pytest.mark.parametrize(("allowed_bytes", "fails"), [(None, True), (4 * GIB, False)])
def test_what_the_script_allowed_holds_unless_another_is_asked_for(allowed_bytes, fails):
    """`set_per_process_memory_fraction` of the run, or what the caller of the replay says."""
    fraction = AllocatorCall(tick=1, action=Action.ALLOWED, bytes=GIB)
    capture = capture_of(allocation_of(2 * GIB, born=2), calls=(fraction,))

    assert fails == (replay_capture(capture, limit_bytes=None, allowed_bytes=allowed_bytes).failure is not None)


def test_what_other_streams_use_serves_later():
    """From the tick on at which they are done with it, or once a card is full: then the allocator waits for them."""
    used = allocation_of(GIB, born=1, died=2, reusable=4)
    capture = capture_of(used, allocation_of(GIB, born=3, died=5), allocation_of(GIB, born=6))
    replayed = replay_capture(capture, limit_bytes=None)
    full = replay_capture(capture, limit_bytes=GIB + 100 * MIB)

    assert replayed.peak_allocated_bytes == GIB
    assert replayed.peak_reserved_bytes == 2 * GIB
    assert (full.failure, full.num_alloc_retries, full.peak_reserved_bytes) == (None, 1, GIB)
