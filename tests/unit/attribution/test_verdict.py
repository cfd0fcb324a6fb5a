"""Fits, does not fit, or too close to say."""

from dataclasses import replace

import pytest

from helpers import allocation_of, capture_of
from peaksight.attribution import first_failure, judge
from peaksight.gpus import find_card, room_on
from peaksight.records import Approximation, Phase
from peaksight.units import GIB, MIB

H100 = find_card("h100-80gb")
T4 = find_card("t4")


def h100_with(usable_bytes):
    """An H100 of which the allocator can reserve `usable_bytes`."""
    return room_on(replace(H100, total_bytes=usable_bytes + H100.context_bytes))


def test_a_small_run_fits():
    """Far below the limit no unknown matters."""
    verdict = judge(capture_of(allocation_of(GIB, born=1)), room_on(H100))

    assert (verdict.fits, verdict.oom) == (True, None)


def test_the_allocation_that_fails_is_named():
    """Size, line, step and phase of the first allocation beyond the limit."""
    capture = capture_of(
        allocation_of(GIB, born=1),
        allocation_of(2 * GIB, born=2, step=3, phase=Phase.BACKWARD, source="train.py:42"),
    )
    verdict = judge(capture, h100_with(2 * GIB))

    assert verdict.fits is False
    assert (verdict.oom.requested_bytes, verdict.oom.allocated_bytes) == (2 * GIB, GIB)
    assert (verdict.oom.at, verdict.oom.step, verdict.oom.phase) == ("train.py:42", 3, Phase.BACKWARD)
    assert verdict.oom.message == (
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 2.51 GiB of which 1.00 GiB is "
        "free. Including non-PyTorch memory, this process has 1.51 GiB memory in use. Of the allocated memory 1.00 GiB "
        "is allocated by PyTorch, and 0 B is reserved by PyTorch but unallocated."
    )


def test_cached_memory_is_given_back_before_failing():
    """Reserved beyond the limit on an unlimited card, yet it fits: the allocator releases its cache and retries."""
    capture = capture_of(allocation_of(GIB, born=1, died=2), allocation_of(GIB + MIB, born=3))

    assert capture.peak_reserved_bytes > 2 * GIB
    assert first_failure(capture, GIB + 100 * MIB) is None


@pytest.mark.parametrize(("slug", "fits"), [("linalg-workspace", None), ("unknown-operator", None), ("draws", True)])
def test_only_unknown_workspaces_make_the_answer_doubtful(slug, fits):
    """A workspace of unknown size may take the last GiB; an approximation without memory may not."""
    unknown = Approximation(slug=slug, what="", bytes=None)
    capture = capture_of(allocation_of(2 * GIB, born=1), not_simulated=(unknown,))

    assert judge(capture, h100_with(3 * GIB - MIB)).fits is fits


def test_an_estimated_context_makes_a_near_miss_likely():
    """The T4's context is not measured; 64 MiB less would let the run through."""
    room = room_on(T4)
    verdict = judge(capture_of(allocation_of(room.usable_bytes + 20 * MIB, born=1)), room)

    assert verdict.fits is None
    assert verdict.oom is not None
