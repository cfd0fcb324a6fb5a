"""A run over its allocations in the Trace Event Format."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import report_on
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall, Phase
from peaksight.reporting.exports.perfetto import report_to_perfetto
from peaksight.units import GIB, MIB

# What each kind of event has beside `name`, `pid`, `tid` and `args`.
FIELDS = {"M": set(), "C": {"ts"}, "X": {"ts", "dur"}, "i": {"ts", "s"}}


@pytest.fixture
def capture():
    """Two steps, in the second of which memory runs out at a tick of 7."""
    return capture_of(
        allocation_of(GIB, born=1, phase=Phase.INIT),
        allocation_of(3 * GIB, born=2, died=4),
        allocation_of(MIB, born=3, phase=Phase.BACKWARD),
        allocation_of(2 * GIB, born=6, step=2),
        steps=[step_of(1, 1, 4, [2], 4 * GIB + MIB, 5 * GIB)],
        calls=(AllocatorCall(tick=7, action=Action.FAILED, bytes=40 * GIB),),
        failures=(failure_of(40 * GIB, tick=7, step=2),),
        fatal=0,
    )


def trace_of(capture):
    report = report_on([capture], room_on(find_card("t4")))
    return report, json.loads(report_to_perfetto(report))


def events_of(trace, kind):
    return [event for event in trace["traceEvents"] if event["ph"] == kind]


def test_every_event_has_its_fields(capture):
    """Counters have numbers, slices a length, instants a scope."""
    _, trace = trace_of(capture)

    for event in trace["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "args"} | FIELDS[event["ph"]] == set(event)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 1) > 0
    assert all(isinstance(value, int) for event in events_of(trace, "C") for value in event["args"].values())


def test_counters_are_the_course(capture):
    """What the categories hold adds up to what is allocated, at the peak to the peak."""
    report, trace = trace_of(capture)
    total = {e["ts"]: e["args"]["total"] for e in events_of(trace, "C") if e["name"] == "allocated bytes"}
    parts = {e["ts"]: sum(e["args"].values()) for e in events_of(trace, "C") if e["name"] == "bytes by category"}

    assert total == parts
    assert report.peak.allocated_bytes == max(total.values())


def test_steps_and_phases_are_slices_of_their_own_rows(capture):
    """Those of one row do not overlap, and a step has its predicted peak."""
    _, trace = trace_of(capture)
    for row in (1, 2):
        ends = [(e["ts"], e["ts"] + e["dur"]) for e in events_of(trace, "X") if e["tid"] == row]

        assert ends == sorted(ends)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    first = next(event for event in events_of(trace, "X") if event["name"] == "step 1")
    assert 4 * GIB + MIB == first["args"]["peak_allocated_bytes"]


def test_the_peak_and_the_failure_are_marked(capture):
    """With the line and the largest holders."""
    _, trace = trace_of(capture)
    marks = {event["name"]: event for event in events_of(trace, "i")}

    assert (3, "train.py:1") == (marks["peak"]["ts"], marks["peak"]["args"]["at"])
    assert 3 * GIB + MIB == marks["peak"]["args"]["holders"][0]["bytes"]
    assert 40 * GIB == marks["out of memory"]["args"]["requested_bytes"]


def test_a_run_without_a_course(capture):
    """Has names alone, and the answer."""
    report, _ = trace_of(capture)
    trace = json.loads(report_to_perfetto(replace(report, course=None)))

    assert {"M"} == {event["ph"] for event in trace["traceEvents"]}
    assert trace["otherData"]["answer"].startswith("Does not fit")
