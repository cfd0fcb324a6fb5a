"""From a report to one with its causes: every rule examines the run that showed the peak."""

from collections.abc import Sequence
from dataclasses import replace

from peaksight.attribution import capture_of_peak, report_on
from peaksight.diagnosis.catalog import all_rules
from peaksight.diagnosis.evidence import Evidence
from peaksight.gpus import Room
from peaksight.records import Capture, Examined, Finding, Outcome, Report
from peaksight.units import format_bytes

# A special cause with at least this part of the peak comes before the general ones.
LARGE_SHARE = 0.1
# A finding of which a more exact one explains this part is not shown beside it.
REFINED_SHARE = 0.8


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
    refined = {finding: better for finding in found if (better := _refinement(finding, found))}
    examined = [answer for answer in answers if isinstance(answer, Examined)]
    examined += [_explained(finding, better) for finding, better in refined.items()]
    shown = (finding for finding in found if finding not in refined)
    ranked = sorted(shown, key=lambda finding: _rank(finding, evidence.peak_bytes))
    return tuple(ranked), tuple(sorted(examined, key=lambda each: each.rule))


def _refinement(finding: Finding, found: Sequence[Finding]) -> Finding | None:
    """The finding that says more exactly what `finding` says."""
    return next(
        (
            other
            for other in found
            if finding.rule in all_rules()[other.rule].refines and other.bytes >= REFINED_SHARE * finding.bytes > 0
        ),
        None,
    )


def _explained(finding: Finding, better: Finding) -> Examined:
    why = f"the {format_bytes(finding.bytes)} that it would claim are those of {better.rule}"
    return Examined(rule=finding.rule, outcome=Outcome.REFUTED, why=why)


def _rank(finding: Finding, peak_bytes: int) -> tuple[bool, bool, int, str]:
    """What is special to the run and large first, the rest by size, and last what has no effect.

    What is done in vain counts for what it would save if it were done right.
    """
    gain = max([finding.bytes, *(fix.saves_bytes or 0 for fix in finding.fixes)])
    is_large = gain >= LARGE_SHARE * peak_bytes
    is_special = is_large and not all_rules()[finding.rule].is_general
    return finding.without_effect and not is_large, not is_special, -gain, finding.rule
