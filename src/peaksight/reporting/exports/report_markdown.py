"""A report for an issue, a pull request or the summary of a job: short, what is long folded."""

from peaksight.records import Report
from peaksight.reporting import rows, sentences, why
from peaksight.reporting.markdown import markdown_templates

NUM_ROWS = 10


def report_to_markdown(report: Report) -> str:
    """The verdict, the peak, why, what would help, and who holds it; the rest is folded."""
    return (
        markdown_templates()
        .get_template("report.md")
        .render(
            report=report,
            sentences=sentences,
            why=why,
            findings=why.shown_findings(report),
            fixes=why.estimated_fixes(report),
            budget=rows.by_category(report.live_at_peak),
            holders=rows.by_place(report.live_at_peak)[:NUM_ROWS],
            steps=rows.ends(list(enumerate(report.steps, start=1)), NUM_ROWS),
            NUM_ROWS=NUM_ROWS,
        )
    )
