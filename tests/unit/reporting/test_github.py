"""Annotations and summaries for GitHub Actions."""

from helpers import holder_of, oom_of, report_of
from peaksight.records import Category
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.reporting.github import report_annotations
from peaksight.units import GIB

KEPT = Finding(
    rule="graph-kept",
    title="100 % of it,\nkept | by <losses>",
    bytes=3 * GIB,
    evidence=(),
    fixes=(Fix(kind="detach", text="losses.append(loss.item())", effect=Effect.BITWISE),),
    basis=Basis.LIFETIME,
    at="train.py:9",
)


def located(at):
    """As if the script stood in src/."""
    name, _, line = at.rpartition(":")
    return (f"src/{name}", int(line)) if name else None


def report(**about):
    return report_of(holder_of(4 * GIB, Category.ACTIVATION, source="train.py:7"), findings=(KEPT,), **about)


def test_a_run_that_does_not_fit_is_an_error_at_its_line():
    """What would end the command or a property is escaped; each cause is a warning at its own line."""
    first, second = report_annotations(report(fits=False, oom=oom_of(GIB, at="train.py:7")), located)

    assert first.startswith("::error file=src/train.py,line=7,title=peaksight::Does not fit: needs ")
    assert second == (
        "::warning file=src/train.py,line=9,title=peaksight%3A graph-kept::100 %25 of it,%0Akept | by <losses> "
        "(3.00 GiB). losses.append(loss.item())."
    )


def test_levels():
    """Fits, and likely fits; a line that is not in the repository is left out."""
    assert next(report_annotations(report(), located)).startswith("::notice file=src/train.py,line=88,")
    assert next(report_annotations(report(fits=None), lambda at: None)).startswith("::warning title=peaksight::Likely")
