"""What NCCL may keep for longer than the run did."""

from dataclasses import replace

from peaksight.attribution.late_release import with_late_release
from peaksight.records import Approximation, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of

NOTE = Approximation(slug="bucket-release", what="", bytes=None)
OTHER = Approximation(slug="draws", what="", bytes=None)


def bounds_of(*allocations, not_simulated=(NOTE, OTHER)):
    """By how much each approximation of these may raise the peak."""
    settled = with_late_release(capture_of(*allocations, not_simulated=not_simulated))
    return {note.slug: note.at_most_bytes for note in settled.not_simulated}


def bucket(born, died, **about):
    return allocation_of(64 * MIB, born=born, died=died, late_free=True, **about)


def in_backward(num_mib, born, died):
    return allocation_of(num_mib * MIB, born=born, died=died, phase=Phase.BACKWARD)


def test_the_first_buckets_in_the_second_backward_pass():
    """Exchanged before a forward: both are there until the backward pass that follows has ended."""
    run = [bucket(1, 2), bucket(3, None), in_backward(32, 4, 5), in_backward(32, 6, 8), allocation_of(MIB, born=9)]

    assert bounds_of(*run) == {"bucket-release": 64 * MIB, "draws": None}


def test_what_a_hook_made_until_the_end_of_its_backward_pass():
    """It dies in it, and what comes after it has more."""
    run = [in_backward(128, 1, None), bucket(2, 3, phase=Phase.BACKWARD), in_backward(32, 4, 5), in_backward(2, 6, 7)]

    assert bounds_of(*run) == {"bucket-release": 32 * MIB, "draws": None}


def test_nothing_is_noted_where_the_peak_is_elsewhere():
    """In an earlier optimizer step, say; and where no backward pass follows."""
    earlier = [allocation_of(512 * MIB, born=1, died=2), bucket(3, 4), in_backward(32, 5, 6)]

    assert bounds_of(*earlier) == {"draws": None}
    assert bounds_of(bucket(1, 2), allocation_of(128 * MIB, born=3)) == {"draws": None}


def test_other_runs_are_as_they_were():
    """Blocks that are freed in time, and captures that know nothing of buckets."""
    freed = replace(bucket(1, 2), late_free=False)

    assert bounds_of(freed, bucket(3, None), in_backward(32, 4, 5)) == {"draws": None}
    assert bounds_of(freed, in_backward(32, 4, 5), not_simulated=(OTHER,)) == {"draws": None}
