"""Causes and estimated fixes, in the words of a report."""

from dataclasses import dataclass

from peaksight.records import Examined, Finding, Fix, Outcome, Report
from peaksight.units import format_bytes

WHY = "Why"
_FIXES = "What would help (estimated from lifetimes, not simulated again)"
_JAX_FIXES = "What would help in this function (`peaksight fix` compiles the whole script with it)"
EXAMINED = "Examined and not found"
NUM_FINDINGS = 5
NUM_FIXES = 3

_OUTCOMES = {Outcome.REFUTED: "no", Outcome.NOT_DECIDABLE: "cannot tell"}


@dataclass(frozen=True, slots=True)
class EstimatedFix:
    """A fix, and the rule that proposes it."""

    fix: Fix
    rule: str


def causes(report: Report) -> tuple[Finding, ...]:
    """What makes the peak, that with the most bytes first."""
    return tuple(finding for finding in report.findings or () if not finding.without_effect)


def without_effect(report: Report) -> tuple[Finding, ...]:
    """What the script does in vain."""
    return tuple(finding for finding in report.findings or () if finding.without_effect)


def shown_findings(report: Report, *, show_all: bool = False) -> tuple[Finding, ...]:
    """The first causes and the first of what has no effect, or all of them, in the order of the report."""
    shown = {*causes(report)[:NUM_FINDINGS], *without_effect(report)[:NUM_FINDINGS]}
    return tuple(finding for finding in report.findings or () if show_all or finding in shown)


def estimated_fixes(report: Report) -> tuple[EstimatedFix, ...]:
    """The fixes by which the peak falls most, of each kind one."""
    proposed = [EstimatedFix(fix, finding.rule) for finding in report.findings or () for fix in finding.fixes]
    ordered = sorted((each for each in proposed if each.fix.saves_bytes), key=lambda each: -(each.fix.saves_bytes or 0))
    kinds: dict[str, EstimatedFix] = {}
    for each in ordered:
        kinds.setdefault(each.fix.kind, each)
    return tuple(kinds.values())[:NUM_FIXES]


def fixes_title(report: Report) -> str:
    """What stands above the estimated fixes."""
    return _JAX_FIXES if report.programs else _FIXES


def size_of(finding: Finding) -> str:
    """What would go from the peak, `no effect` where nothing would."""
    return "no effect" if finding.without_effect else format_bytes(finding.bytes)


def saving_of(fix: Fix) -> str:
    """`-1.20 GiB`, with a minus of ASCII."""
    return f"-{format_bytes(fix.saves_bytes or 0)}"


def sentence(words: str) -> str:
    """`words` with the full stop that they may have."""
    return words if words.endswith((".", "!", "?")) else f"{words}."


def outcome_of(examined: Examined) -> str:
    """`no`, or `cannot tell`."""
    return _OUTCOMES[examined.outcome]
