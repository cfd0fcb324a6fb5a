"""The report as a whole."""

from helpers import allocation_of, capture_of, step_of
from peaksight.attribution import build_report
from peaksight.gpus import find_card
from peaksight.records import Phase
from peaksight.units import GIB, MIB

H100 = find_card("h100-80gb")


def test_the_peak_names_the_allocation_that_made_it():
    """Step, phase and line are of the allocation that reached the peak, not of the largest."""
    capture = capture_of(
        allocation_of(4 * GIB, born=1, source="train.py:5"),
        allocation_of(MIB, born=2, source="train.py:9", step=2, phase=Phase.BACKWARD),
        steps=[step_of(1, 1, 1), step_of(2, 2, 2)],
    )
    peak = build_report(capture, H100).peak

    assert (peak.at, peak.step, peak.phase) == ("train.py:9", 2, Phase.BACKWARD)
    assert peak.process_bytes == peak.reserved_bytes + 518 * MIB


def test_the_process_is_unknown_where_the_context_is_not_measured():
    """The T4's context is an estimate: named among what is not simulated, and no process total."""
    report = build_report(capture_of(allocation_of(MIB, born=1)), find_card("t4"))

    assert report.peak.process_bytes is None
    assert {"context-estimated"} == {unknown.slug for unknown in report.not_simulated}


def test_what_nothing_computes_is_null():
    """No findings and none looked for are different things."""
    report = build_report(capture_of(), H100)

    assert report.findings is None
    assert report.not_reached is None


def test_a_run_cut_short_gives_no_verdict_unless_it_already_failed():
    """A run that was interrupted below the limit may still have grown; one above it has failed."""
    small, large = allocation_of(MIB, born=1), allocation_of(90 * GIB, born=1)

    assert build_report(capture_of(small, finished="interrupted"), H100).fits is None
    assert build_report(capture_of(large, finished="interrupted"), H100).fits is False


def test_a_script_that_never_uses_the_card_has_an_empty_peak():
    """Step 0, no line."""
    peak = build_report(capture_of(), H100).peak

    assert (peak.allocated_bytes, peak.step, peak.at) == (0, 0, "")
