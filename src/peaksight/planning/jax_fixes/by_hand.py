"""What the rules propose and no change of a plan makes: edits of the function, as liveness on its jaxpr sees them."""

from collections.abc import Iterator

from peaksight.planning.kind import Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Basis, Finding, Fix
from peaksight.records.proposals import NotApplied
from peaksight.units import format_bytes

# The fixes of rules that are tried as changes of a plan.
TRIED = frozenset({"donate", "cast-before-call", "checkpoint-scan-body", "prevent-cse", "mem-fraction"})


def propose(situation: Situation) -> Iterator[Proposal]:
    """Each fix of a finding that is not among what is tried."""
    for finding in situation.report.findings or ():
        for fix in finding.fixes:
            if fix.kind not in TRIED:
                yield NotApplied(
                    kind=fix.kind, title=finding.title, effect=fix.effect, why=_why(finding, fix), advice=fix.text
                )


def _why(finding: Finding, fix: Fix) -> str:
    if finding.basis is Basis.COUNTERFACTUAL and fix.saves_bytes:
        saved = format_bytes(fix.saves_bytes)
        return f"an edit of the function; liveness on its jaxpr, not XLA, says that it saves {saved}"
    return "an edit of the script, which is not simulated"
