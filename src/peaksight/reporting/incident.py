"""The post-mortem of a run that does not fit, in Markdown: what people otherwise write by hand."""

import shlex
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from peaksight.records import Report
from peaksight.records.proposals import FixReport
from peaksight.reporting import rows
from peaksight.reporting.plans import place, slow_down
from peaksight.units import format_bytes


def incident_to_markdown(found: FixReport, report: Report) -> str:
    """What `fix` found, with the causes and the budget in `report`, which is of the run as it is."""
    page = _environment().get_template("incident.md")
    return page.render(
        found=found,
        findings=[each for each in report.findings or () if not each.without_effect],
        budget=rows.by_category(report.live_at_peak),
        place=place,
        slow_down=slow_down,
        command=shlex.join(found.argv),
    )


@cache
def _environment() -> Environment:
    loader = PackageLoader("peaksight.reporting")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"bytes": format_bytes, "cell": _cell}
    return environment


def _cell(text: str) -> str:
    """`text` as it may stand in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
