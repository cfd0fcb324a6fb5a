"""The report as a web page: one file, no script, nothing fetched."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from peaksight import __version__
from peaksight.records import Report
from peaksight.records.recording import RecordingReport
from peaksight.reporting import recording_sentences, rows, sentences, why
from peaksight.reporting.chart import steps_chart, timeline_chart
from peaksight.units import format_bytes


def report_to_html(report: Report) -> str:
    """`report` as a page that opens anywhere, light or dark, wide or narrow."""
    chart = Markup(steps_chart(report)) if report.steps else ""
    page = _environment().get_template("report.html")
    return page.render(report=report, chart=chart, rows=rows, sentences=sentences, why=why, version=__version__)


def recording_to_html(report: RecordingReport) -> str:
    """The same for a memory snapshot."""
    chart = Markup(timeline_chart(report.timeline, report.gpu.usable_bytes)) if len(report.timeline) > 1 else ""
    page = _environment().get_template("recording.html")
    return page.render(
        report=report, chart=chart, rows=rows, sentences=sentences, words=recording_sentences, version=__version__
    )


@cache
def _environment() -> Environment:
    loader = PackageLoader("peaksight.reporting")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"bytes": format_bytes, "breakable": _breakable}
    return environment


def _breakable(name: str) -> Markup:
    """A path or a module that may be broken between its parts where the page is narrow."""
    return Markup(re.sub(r"([/_]|\.(?!py\b))", r"\1<wbr>", str(escape(name))))
