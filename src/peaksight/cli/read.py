"""`peaksight read`: a crash that already happened, explained from its log or its memory snapshot."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from peaksight.cli.output import Output
from peaksight.cli.publish import STDOUT, Destinations, destination_options, write_file
from peaksight.cli.snapshots import read_recording, write_page
from peaksight.diagnosis import explain
from peaksight.errors import UsageError
from peaksight.postmortem import read_log
from peaksight.postmortem.snapshots import is_snapshot
from peaksight.records import Reading
from peaksight.records.recording import RecordingReport
from peaksight.reporting.json import answers_to_json
from peaksight.reporting.reading import render_reading
from peaksight.reporting.recording import render_recording

Answer = Reading | RecordingReport

_NO_ANSWER = 2
_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@destination_options
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
def read(files: tuple[Path, ...], **options: Any) -> int:
    """Explain a crash from its log or its memory snapshot.

    FILE holds error text, mixed with anything (- is stdin), or is what torch.cuda.memory._dump_snapshot() wrote. --html
    is for a snapshot.

    Needs neither torch nor a GPU. The exit code is 0 if a file says something about memory, else 2.
    """
    to, output = Destinations(**options), Output()
    to.check()
    answers = [answer for path in files if _says_something(answer := _read(path, output))]
    if not answers:
        click.echo(f"peaksight: {_names(files)}: nothing about memory that peaksight knows.", err=True)
        return _NO_ANSWER
    _publish(answers, to, output)
    return 0


def _read(path: Path, output: Output) -> Answer:
    """What one file tells."""
    try:
        if path == STDOUT:
            return explain(read_log(sys.stdin.buffer, "stdin"))
        if is_snapshot(path):
            return read_recording(path, output)
        with path.open("rb") as stream:
            return explain(read_log(stream, path.name))
    except (OSError, EOFError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"Can't read {path}: {cause}; name a log, or - for stdin.", slug="cannot-read") from error


def _says_something(answer: Answer) -> bool:
    return isinstance(answer, RecordingReport) or bool(answer.messages or answer.causes or answer.checks)


def _publish(answers: list[Answer], to: Destinations, output: Output) -> None:
    """Print the pages, unless the JSON takes stdout, and write the file asked for."""
    if to.html:
        write_page([answer for answer in answers if isinstance(answer, RecordingReport)], to.html, output)
    if to.json == STDOUT:
        output.print(answers_to_json(answers))
        return
    for position, answer in enumerate(answers):
        if position:
            output.print("\n")
        output.draw(_page(answer))
    if to.json:
        write_file(to.json, lambda path: path.write_text(answers_to_json(answers), encoding="utf-8"), output)


def _page(answer: Answer) -> Callable[[Console], None]:
    if isinstance(answer, RecordingReport):
        return partial(render_recording, answer)
    return partial(render_reading, answer)


def _names(files: tuple[Path, ...]) -> str:
    return ", ".join("stdin" if path == STDOUT else path.name for path in files)
