"""From a report to one with its causes: every rule examines the run that showed the peak."""

from collections.abc import Sequence
from dataclasses import replace

from peaksight.attribution import capture_of_peak, report_on
from peaksight.diagnosis.catalog import all_rules
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.jax_diagnose import examine_program
from peaksight.diagnosis.rule import LARGE_SHARE
from peaksight.gpus import Room
from peaksight.records import Capture, Effect, Examined, Finding, Outcome, Report
from peaksight.units import format_bytes

# A finding of which a more exact one explains this part is not shown beside it.
REFINED_SHARE = 0.8


def explained_report(captures: Sequence[Capture], room: Room) -> Report:
    """The report of one command on cards like that of `room`, with its causes; `captures` are as in `report_on`."""
    report = report_on(captures, room)
    findings, examined = examine(capture_of_peak(captures, report.device, report.rank), report)
    return replace(report, findings=findings, examined=examined)


def examine(capture: Capture, report: Report | None = None) -> tuple[tuple[Finding, ...], tuple[Examined, ...]]:
    """What the rules find in `capture`, the most decisive first, and the causes that they refute.

    `report` is that of the run on its card, where there is one.
    """
    if capture.pool_bytes is not None:
        return examine_program(capture.programs[0]) if capture.programs else ((), ())
    evidence = Evidence(capture)
    answers = [rule.look(evidence) for rule in all_rules().values()] if capture.allocations else []
    found = [finding for answer in answers if isinstance(answer, tuple) for finding in answer]
    refined = {finding: better for finding in found if (better := _refinement(finding, found))}
    examined = [answer for answer in answers if isinstance(answer, Examined)]
    examined += [_explained(finding, better) for finding, better in refined.items()]
    shown = (finding for finding in found if finding not in refined)
    is_in_pieces = report is not None and _fails_for_pieces(report)
    ranked = sorted(shown, key=lambda finding: _rank(finding, evidence, is_in_pieces))
    return tuple(ranked), tuple(sorted(examined, key=lambda each: each.rule))


def _refinement(finding: Finding, found: Sequence[Finding]) -> Finding | None:
    """The finding that says more exactly what `finding` says, the largest where it takes several."""
    better = [other for other in found if finding.rule in all_rules()[other.rule].refines]
    if not finding.bytes or sum(other.bytes for other in better) < REFINED_SHARE * finding.bytes:
        return None
    return max(better, key=lambda other: other.bytes)


def _explained(finding: Finding, better: Finding) -> Examined:
    why = f"the {format_bytes(finding.bytes)} that it would claim are those of {better.rule}"
    return Examined(rule=finding.rule, outcome=Outcome.REFUTED, why=why)


def _fails_for_pieces(report: Report) -> bool:
    """Whether the card had room for what failed, and for the whole job, but not in one piece."""
    oom, usable = report.oom, report.gpu.usable_bytes
    return oom is not None and max(oom.allocated_bytes + oom.requested_bytes, report.peak.allocated_bytes) <= usable


def _rank(finding: Finding, evidence: Evidence, is_in_pieces: bool) -> tuple[int, int, str]:
    """The order of findings: by their kind, and those of one kind by size.

    What was asked for and does not happen counts for what it would save if it did, or comes first where the training
    itself is another without it.
    """
    gain = max([finding.bytes, *(fix.saves_bytes or 0 for fix in finding.fixes)])
    return _kind(finding, gain, evidence, is_in_pieces), -gain, finding.rule


def _kind(finding: Finding, gain: int, evidence: Evidence, is_in_pieces: bool) -> int:
    """What the run fails for, what is done in vain, what is special to the run, the rest, and what matters little."""
    rule = all_rules()[finding.rule]
    if rule.of_reserved:
        return 0 if is_in_pieces else 3 if evidence.reserved.is_of_steps else 5
    if finding.without_effect:
        changes_training = any(fix.effect is Effect.MODEL for fix in finding.fixes)
        return 1 if changes_training or gain >= LARGE_SHARE * evidence.peak_bytes else 6
    return 4 if rule.is_general or gain < rule.large_share * evidence.peak_bytes else 2
