"""The report of a watched run."""

from dataclasses import replace

from helpers_capsules import process_of, steps_of
from peaksight.attribution import build_watched_report
from peaksight.attribution.watched_runs import MAX_PARTS
from peaksight.records.watched import Watched
from peaksight.reporting.watched import ending, happened
from peaksight.units import GIB


def watched(*steps, rank=0, run="job", started=1.0):
    """What one process of one wrote."""
    return Watched(process=replace(process_of(rank, world_size=1), run=run, started=started), steps=steps)


def test_many_steps_are_some_hundred_parts():
    """The fullest step of each stands for it, so that no peak is lost."""
    steps = [*steps_of(until=5000)]
    steps[4321] = replace(steps[4321], peak_reserved_bytes=20 * GIB)
    (rank,) = build_watched_report([watched(*steps)]).ranks

    assert len(rank.parts) <= MAX_PARTS
    assert sum(part.num_steps for part in rank.parts) == rank.num_steps == 5000
    assert max(part.step.peak_reserved_bytes for part in rank.parts) == rank.peak_reserved_bytes == 20 * GIB
    assert rank.peak_step == 4322


def test_the_last_launch_is_told_of():
    """Of two in one directory, and of each card its own steps."""
    first, second = steps_of(until=2)
    both = (first, replace(first, device=1, peak_reserved_bytes=10 * GIB), second)
    report = build_watched_report([watched(*steps_of(until=9), run="old"), watched(*both, run="new", started=2.0)])

    assert [(rank.device, rank.num_steps) for rank in report.ranks] == [(0, 2), (1, 1)]
    assert report.run == "new"
    assert "10.00 GiB reserved (measured), in step 1 of 1." in happened(report)


def test_how_far_a_prediction_was_off():
    """By the worst step."""
    steps = [replace(step, predicted_allocated_bytes=(8 - step.step) * GIB) for step in steps_of(until=2)]
    report = build_watched_report([watched(*steps)])

    assert (report.ranks[0].worst_error, report.ranks[0].worst_step) == (-0.25, 2)
    assert "the prediction is off by 25.0 % at most, in step 2" in happened(report)


def test_without_steps_and_without_an_end():
    """That is said."""
    report = build_watched_report([watched()])

    assert happened(report) == "No step of the run was recorded."
    assert ending(report.ranks[0]) == "no end was recorded"
