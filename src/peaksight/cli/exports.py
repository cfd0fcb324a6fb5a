"""`--format` for files that other tools read: what is written for each."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from peaksight.cli.formats import FORMATS, MARKDOWN, TEXT, located, script_of
from peaksight.cli.output import STDOUT
from peaksight.errors import UsageError
from peaksight.gpus import Room
from peaksight.records import Capture, Report

MEMORY_VIZ = "memory_viz"


@dataclass(frozen=True, slots=True)
class Run:
    """What an export may tell of: the report, and the captures that it was made of, on the card of `room`."""

    report: Report
    captures: Sequence[Capture]
    room: Room


def _memory_viz(run: Run) -> bytes:
    from peaksight.attribution import memory_traces
    from peaksight.reporting.exports.memory_viz import snapshot_pickle

    if any(capture.pool_bytes is not None for capture in run.captures):
        raise UsageError(
            "No memory_viz of a run under JAX: it shows what PyTorch's allocator does. Choose another --format.",
            slug="not-pytorch",
        )
    return snapshot_pickle(memory_traces(run.captures, run.room, run.report.rank))


def _markdown(run: Run) -> bytes:
    from peaksight.reporting.exports.report_markdown import report_to_markdown

    return report_to_markdown(run.report).encode(errors="replace")


def _speedscope(run: Run) -> bytes:
    from peaksight.reporting.exports.speedscope import report_to_speedscope

    return report_to_speedscope(run.report)


def _perfetto(run: Run) -> bytes:
    from peaksight.reporting.exports.perfetto import report_to_perfetto

    return report_to_perfetto(run.report)


def _sarif(run: Run) -> bytes:
    from peaksight.diagnosis.catalog import finds_of, text_of, title_of
    from peaksight.reporting.exports.sarif import RuleText, report_to_sarif

    found = {finding.rule for finding in run.report.findings or ()}
    rules = {slug: RuleText(title=title_of(slug), finds=finds_of(slug), markdown=text_of(slug)) for slug in found}
    line_texts = {line.at: line.text for capture in run.captures for line in capture.source_lines}
    return report_to_sarif(run.report, rules, located(script_of(run.report.argv)), line_texts)


# Each makes the whole file; its modules are imported when it is asked for.
EXPORTS: dict[str, Callable[[Run], bytes]] = {
    MARKDOWN: _markdown,
    MEMORY_VIZ: _memory_viz,
    "speedscope": _speedscope,
    "perfetto": _perfetto,
    "sarif": _sarif,
}
# What is text for a person goes to stdout where no --output is given.
PRINTED = frozenset({MARKDOWN})
_OUTPUT = click.Path(dir_okay=False, allow_dash=True, resolve_path=True, path_type=Path)


def export_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--format` with all formats, and `--output`."""
    choice = click.option(
        "--format",
        "form",
        type=click.Choice((*FORMATS, *EXPORTS)),
        default=TEXT,
        show_default=True,
        metavar="FORM",
        help=f"{', '.join((*FORMATS, *EXPORTS))}: github adds annotations, and a summary where GITHUB_STEP_SUMMARY "
        "names a file; others go to --output.",
    )
    output = click.option(
        "-o",
        "--output",
        type=_OUTPUT,
        metavar="FILE",
        help="Where a --format that other tools read is written; - is all there is on stdout.",
    )
    return choice(output(command))


def check_output(form: str, output: Path | None) -> None:
    """Raise UsageError where `form` needs an `output`, cannot go there, or has none."""
    if form in EXPORTS and form not in PRINTED and output is None:
        raise UsageError(
            f"--format {form} is a file for other tools: say where it goes with --output FILE, - for stdout.",
            slug="no-output",
        )
    if form not in EXPORTS and output is not None:
        raise UsageError(
            f"--output is for what other tools read, and --format {form} is printed: choose one of "
            f"{', '.join(EXPORTS)} with --format.",
            slug="no-output",
        )
    if form == MEMORY_VIZ and output == STDOUT and sys.stdout.isatty():
        raise UsageError(
            f"--format {form} is not text, and stdout is a terminal: name a file with --output, or pipe it on.",
            slug="no-output",
        )
