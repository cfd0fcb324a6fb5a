"""From a report to one with its causes: every rule examines the run that showed the peak."""

from collections.abc import Sequence
from dataclasses import replace

from peaksight.attribution import capture_of_peak, report_on
from peaksight.diagnosis.catalog import all_rules
from peaksight.diagnosis.evidence import Evidence
from peaksight.gpus import Room
from peaksight.records import Capture, Examined, Finding, Report

# A special cause with at least this part of the peak comes before the general ones.
LARGE_SHARE = 0.1


def explained_report(captures: Sequence[Capture], room: Room) -> Report:
    """The report of one command on cards like that of `room`, with its causes; `captures` are as in `report_on`."""
    report = report_on(captures, room)
    findings, examined = examine(capture_of_peak(captures, report.device))
    return replace(report, findings=findings, examined=examined)


def examine(capture: Capture) -> tuple[tuple[Finding, ...], tuple[Examined, ...]]:
    """What the rules find in `capture`, by the bytes that would go, and the causes that they refute."""
    evidence = Evidence(capture)
    answers = [rule.look(evidence) for rule in all_rules().values()] if capture.allocations else []
    found = [finding for answer in answers if isinstance(answer, tuple) for finding in answer]
    examined = tuple(answer for answer in answers if isinstance(answer, Examined))
    return tuple(sorted(found, key=lambda finding: _rank(finding, evidence.peak_bytes))), examined


def _rank(finding: Finding, peak_bytes: int) -> tuple[bool, bool, int, str]:
    """Causes before what has no effect; what is special to the run and large first, and then by size."""
    is_special = not all_rules()[finding.rule].is_general and finding.bytes >= LARGE_SHARE * peak_bytes
    return finding.without_effect, not is_special, -finding.bytes, finding.rule
