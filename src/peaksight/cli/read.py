"""`peaksight read`: a crash that already happened, explained from its log."""

import sys
from functools import partial
from pathlib import Path

import click

from peaksight.cli.output import Output
from peaksight.cli.publish import STDOUT, Destinations, json_options, write_file
from peaksight.diagnosis import explain
from peaksight.errors import UsageError
from peaksight.postmortem import read_log
from peaksight.records import Reading
from peaksight.reporting.json import readings_to_json
from peaksight.reporting.reading import render_reading

_NO_ANSWER = 2
_FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command()
@json_options
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
def read(files: tuple[Path, ...], json: Path | None, force: bool) -> int:
    """Explain a crash from its log: FILE holds error text, mixed with anything; - is stdin.

    Needs neither torch nor a GPU. The exit code is 0 if the text says something about memory, else 2.
    """
    to = Destinations(json=json, force=force)
    to.check()
    readings = [reading for path in files if _says_something(reading := _read(path))]
    if not readings:
        click.echo(f"peaksight: {_names(files)}: nothing about memory that peaksight knows.", err=True)
        return _NO_ANSWER
    _publish(readings, to, Output())
    return 0


def _read(path: Path) -> Reading:
    """The reading of one file."""
    try:
        if path == STDOUT:
            return explain(read_log(sys.stdin.buffer, "stdin"))
        with path.open("rb") as stream:
            return explain(read_log(stream, path.name))
    except (OSError, EOFError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"Can't read {path}: {cause}; name a log, or - for stdin.", slug="cannot-read") from error


def _says_something(reading: Reading) -> bool:
    return bool(reading.messages or reading.causes or reading.checks)


def _publish(readings: list[Reading], to: Destinations, output: Output) -> None:
    """Print the pages, unless the JSON takes stdout, and write the file asked for."""
    if to.json == STDOUT:
        output.print(readings_to_json(readings))
        return
    for position, reading in enumerate(readings):
        if position:
            output.print("\n")
        output.draw(partial(render_reading, reading))
    if to.json:
        write_file(to.json, lambda path: path.write_text(readings_to_json(readings), encoding="utf-8"), output)


def _names(files: tuple[Path, ...]) -> str:
    return ", ".join("stdin" if path == STDOUT else path.name for path in files)
