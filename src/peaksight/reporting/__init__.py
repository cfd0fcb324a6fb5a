"""Shows a report: to a person in a terminal, to a program as JSON. Decides nothing, imports no torch."""

from peaksight.reporting.json import report_from_json, report_to_json
from peaksight.reporting.sentences import again_line, no_answer, progress_line, stopped_line
from peaksight.reporting.terminal import render_report

__all__ = [
    "again_line",
    "no_answer",
    "progress_line",
    "render_report",
    "report_from_json",
    "report_to_json",
    "stopped_line",
]
