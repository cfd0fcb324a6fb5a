"""Recordings as web pages: one file, no script, nothing fetched."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from peaksight import __version__
from peaksight.records.recording import RecordingReport
from peaksight.reporting import recording_sentences, rows, sentences
from peaksight.reporting.chart import timeline_chart
from peaksight.units import format_bytes, format_difference


def recording_to_html(report: RecordingReport) -> str:
    """A memory snapshot as a page that opens anywhere, light or dark, wide or narrow."""
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
    environment.filters |= {"bytes": format_bytes, "breakable": _breakable, "difference": format_difference}
    return environment


def _breakable(name: str) -> Markup:
    """A path or a module that may be broken between its parts where the page is narrow."""
    return Markup(re.sub(r"([/_]|\.(?!py\b))", r"\1<wbr>", str(escape(name))))
