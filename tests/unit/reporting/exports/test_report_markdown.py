"""The report for issues and pull requests."""

from golden_files import compare_golden
from helpers import holder_of, oom_of, report_of
from peaksight.records import Approximation, Category
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.reporting.exports.report_markdown import report_to_markdown
from peaksight.units import GIB, MIB

KEPT = Finding(
    rule="graph-kept",
    title="100 % of it,\nkept | by <losses> for @team",
    bytes=3 * GIB,
    evidence=("3.00 GiB at train.py:9 in `losses`",),
    fixes=(Fix(kind="detach", text="losses.append(loss.item())", effect=Effect.BITWISE, saves_bytes=3 * GIB),),
    basis=Basis.LIFETIME,
    at="train.py:9",
)
HOLDERS = (
    holder_of(4 * GIB, Category.ACTIVATION, source="train.py:7", module="Net.h.0|x"),
    holder_of(MIB, Category.PARAMETER, source="my_model.py:1"),
)


def test_a_run_that_fails():
    """Everything that a page may have."""
    unknown = Approximation(slug="draws", what="random numbers", bytes=None)
    failing = report_of(*HOLDERS, fits=False, oom=oom_of(GIB, live=HOLDERS), findings=(KEPT,), not_simulated=(unknown,))

    compare_golden(report_to_markdown(failing), "report.md")


def test_what_a_script_named_is_no_markup():
    """In titles, evidence and tables."""
    page = report_to_markdown(report_of(*HOLDERS, findings=(KEPT,)))

    assert "### peaksight: `train.py`\n" in page
    assert "| 100 % of it, kept \\| by &lt;losses&gt; for @<!-- -->team `graph-kept` | 3.00 GiB |" in page
    assert "| activation | 4.00 GiB |\n" in page
    assert "| `Net.h.0\\|x` | `train.py:7` |" in page


def test_sections_without_content_are_left_out():
    """As of a run that allocated nothing."""
    page = report_to_markdown(report_of(steps=()))

    assert "<details>" not in page
    assert "Nothing to predict" in page
