"""The report as a whole."""

import pytest

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import build_report
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall, NotReached, Phase
from peaksight.units import GIB, MIB

H100 = room_on(find_card("h100-80gb"))


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


def test_the_process_holds_libraries_and_a_context_too():
    """The T4's context is an estimate, which is said."""
    room = room_on(find_card("t4"))
    report = build_report(capture_of(allocation_of(MIB, born=1), outside_bytes=100 * MIB), room)

    assert report.peak.process_bytes == 2 * MIB + 100 * MIB + room.context_bytes
    assert report.gpu.usable_bytes == room.usable_bytes - 100 * MIB
    assert "context-estimated" in {unknown.slug for unknown in report.not_simulated}


@pytest.mark.parametrize(("allowed", "usable"), [([GIB, 2 * GIB], 2 * GIB), ([GIB, 0], H100.usable_bytes)])
def test_what_the_script_allows_itself_is_what_it_can_use(allowed, usable):
    """The last word counts, and 0 is no cap."""
    calls = [AllocatorCall(tick=tick, action=Action.ALLOWED, bytes=cap) for tick, cap in enumerate(allowed)]

    assert build_report(capture_of(calls=tuple(calls)), H100).gpu.usable_bytes == usable


def test_what_the_job_needs_is_of_the_unlimited_run():
    """The first run ended early; its failure, its exit code and the time of both are told."""
    failed = capture_of(
        allocation_of(GIB, born=1),
        failures=(failure_of(MIB, tick=0), failure_of(2 * GIB, tick=1)),
        fatal=1,
        finished="failed",
        script_exit=1,
    )
    whole = capture_of(allocation_of(GIB, born=1), allocation_of(90 * GIB, born=2), steps=[step_of(1, 1, 2)])
    report = build_report(failed, H100, whole)

    assert (report.peak.allocated_bytes, report.finished, report.script_exit) == (91 * GIB, "steady", 1)
    assert (report.oom.requested_bytes, report.caught_ooms, report.seconds) == (2 * GIB, 1, 5.0)
    assert sum(holder.bytes for holder in report.oom.live) == GIB


def test_what_nothing_computes_is_null():
    """No findings and none looked for are different things."""
    report = build_report(capture_of(), H100)

    assert report.findings is None
    assert report.not_reached is None


def test_what_was_not_reached_is_of_the_whole_run():
    """One that a failure ended early reached less."""
    lines = NotReached(at="train.py:7", text="torch.save(x)"), NotReached(at="train.py:9", text="evaluate()")
    failures = {"failures": (failure_of(MIB, tick=0),), "fatal": 0, "finished": "failed"}
    report = build_report(capture_of(not_reached=lines, **failures), H100, capture_of(not_reached=lines[1:]))

    assert report.not_reached == ("train.py:9",)
    assert report.not_reached_lines == lines[1:]
    assert build_report(capture_of(not_reached=()), H100).not_reached == ()


def test_a_script_that_never_uses_the_card_has_an_empty_peak():
    """Step 0, no line."""
    peak = build_report(capture_of(), H100).peak

    assert (peak.allocated_bytes, peak.step, peak.at) == (0, 0, "")
