"""What NCCL may keep for longer than the run did."""

from dataclasses import replace

from peaksight.attribution.late_release import with_late_release
from peaksight.records import Approximation
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

NOTE = Approximation(slug="bucket-release", what="", bytes=None)
RECORDED = Approximation(slug="record-stream", what="", bytes=None)
OTHER = Approximation(slug="draws", what="", bytes=None)


def bounds_of(*allocations, steps=(20,), not_simulated=(NOTE, OTHER), finished="steady"):
    """By how much each approximation may raise the peak of these; `steps` are the ticks at which steps end."""
    steps = [step_of(1 + place, 0, last) for place, last in enumerate(steps)]
    settled = with_late_release(capture_of(*allocations, steps=steps, not_simulated=not_simulated, finished=finished))
    return {note.slug: note.at_most_bytes for note in settled.not_simulated}


def bucket(born, died, **about):
    return allocation_of(64 * MIB, born=born, died=died, late_free=True, **about)


def other(num_mib, born, died):
    return allocation_of(num_mib * MIB, born=born, died=died)


def test_the_first_buckets_in_the_second_step():
    """Exchanged before its forward: both are there until it has ended."""
    run = [bucket(1, 2), bucket(3, None), other(32, 4, 5), other(32, 6, 8), other(512, 11, 12)]

    assert bounds_of(*run) == {"bucket-release": 64 * MIB, "draws": None}
    assert bounds_of(*run, steps=(1, 10, 20)) == {"bucket-release": 64 * MIB, "draws": None}


def test_nothing_is_noted_where_the_peak_is_elsewhere():
    """In an earlier step, say; and where no step follows."""
    earlier = [other(512, 1, 2), bucket(3, 4), other(32, 5, 6)]

    assert bounds_of(*earlier) == {"draws": None}
    assert bounds_of(bucket(1, 2), other(128, 3, None), steps=(1,)) == {"draws": None}


def test_other_runs_are_as_they_were():
    """Blocks that are freed in time, and captures that know nothing of buckets."""
    freed = replace(bucket(1, 2), late_free=False)

    assert bounds_of(freed, bucket(3, None), other(32, 4, 5)) == {"draws": None}
    assert bounds_of(freed, other(32, 4, 5), not_simulated=(OTHER,)) == {"draws": None}


def test_what_other_streams_use():
    """Between at once and the end of the step: noted where one of them changes what is reserved."""
    used = allocation_of(64 * MIB, born=1, died=2, reusable=5)

    def bounds(*others, finished="steady"):
        return bounds_of(used, *others, not_simulated=(RECORDED, OTHER), finished=finished)

    assert bounds(other(64, 3, 4)) == {"record-stream": 0, "draws": None}
    assert bounds(other(64, 6, 7)) == {"record-stream": 64 * MIB, "draws": None}
    assert bounds(other(64, 3, 4), finished="unsteady") == {"record-stream": None, "draws": None}
    assert bounds(other(64, 3, None), other(128, 6, 7)) == {"record-stream": 0, "draws": None}
    assert bounds(other(128, 3, 4)) == {"draws": None}
    assert bounds(other(512, 21, 22)) == {"draws": None}
