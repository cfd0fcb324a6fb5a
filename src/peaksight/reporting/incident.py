"""The post-mortem of a run that does not fit, in Markdown: what people otherwise write by hand."""

import shlex

from peaksight.records import Report
from peaksight.records.proposals import FixReport
from peaksight.reporting import rows
from peaksight.reporting.markdown import markdown_templates
from peaksight.reporting.plans import head_room_bytes, place, slow_down


def incident_to_markdown(found: FixReport, report: Report) -> str:
    """What `fix` found, with the causes and the budget in `report`, which is of the run as it is."""
    page = markdown_templates().get_template("incident.md")
    return page.render(
        found=found,
        findings=[each for each in report.findings or () if not each.without_effect],
        budget=rows.by_category(report.live_at_peak),
        place=place,
        slow_down=slow_down,
        head_room_bytes=head_room_bytes,
        command=shlex.join(found.argv),
    )
