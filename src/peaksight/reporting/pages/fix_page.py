"""The pages of `peaksight fix`: the plans that were found, and a run at several values."""

from peaksight.records.findings import Effect
from peaksight.records.proposals import FixReport, Outcome
from peaksight.records.sweep import SweepReport
from peaksight.reporting import certificate, plans
from peaksight.reporting.json import fix_to_json, sweep_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import render_page
from peaksight.reporting.sweeps import sweep_line

CLASSES = {
    Effect.BITWISE: "trains the same, bit for bit",
    Effect.ROUNDING: "trains the same up to rounding",
    Effect.NOISE: "trains for the same objective, with other noise of the optimization",
    Effect.MODEL: "changes what is trained",
}


def fix_to_html(found: FixReport) -> str:
    """`found` as a page that opens anywhere: what each plan needs and does, beside the run as it is."""
    return render_page(
        "fix.html",
        fix_to_json(found),
        scripts=assets.FIX,
        charts=True,
        found=found,
        plans=plans,
        certificates=certificate,
        classes=CLASSES,
        phases=_phases(found),
        diff=[(_kind(line), line) for line in found.diff.splitlines()],
        rejected=[each for each in found.tried if not each.fits and len(each.candidate.kinds) == 1],
    )


def sweep_to_html(found: SweepReport) -> str:
    """The same for a run at several values of a flag, or on several cards."""
    return render_page(
        "sweep.html", sweep_to_json(found), scripts=assets.SWEEP, charts=True, found=found, answer=sweep_line(found)
    )


def _phases(found: FixReport) -> list[tuple[str, int | None, int | None]]:
    """The most of each phase as it is, and under the plan or what came nearest to one."""
    after = (found.best or found.smallest).outcome
    before, then = _by_phase(found.original.outcome), _by_phase(after)
    return [(phase, before.get(phase), then.get(phase)) for phase in dict.fromkeys((*before, *then))]


def _by_phase(outcome: Outcome) -> dict[str, int]:
    return {each.phase.value: each.allocated_bytes for each in outcome.phases}


def _kind(line: str) -> str:
    """The class of CSS of a line of a diff."""
    if line.startswith(("+++", "---", "@@")):
        return "place"
    return {"+": "added", "-": "gone"}.get(line[:1], "")
