"""What a run needs at several values of a flag, for a pull request or the summary of a job."""

from peaksight.records.sweep import SweepReport
from peaksight.reporting.markdown import markdown_templates
from peaksight.reporting.sweeps import COLUMNS, cells_of, sweep_line


def sweep_to_markdown(found: SweepReport) -> str:
    """The answer, and a row for each value."""
    names = (*COLUMNS, "fits")
    titles = [found.flag, *names]
    rows = [[row.value, *(cells_of(row)[name] for name in names)] for row in found.rows]
    if found.asked == "cheapest":
        titles.append("plan")
        rows = [[*cells, row.tried.candidate.title] for cells, row in zip(rows, found.rows, strict=True)]
    page = markdown_templates().get_template("sweep.md")
    return page.render(found=found, answer=sweep_line(found), titles=titles, rows=rows)
