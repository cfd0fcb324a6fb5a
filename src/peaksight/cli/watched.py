"""The report of a watched run: what `report` makes of its records, and `watch --html` at the end."""

from functools import partial
from pathlib import Path

from peaksight.attribution import build_watched_report
from peaksight.cli.formats import TEXT
from peaksight.cli.output import Output
from peaksight.cli.pages import watched_page
from peaksight.cli.publish import Answer, Destinations, publish_answer, write_file
from peaksight.errors import PeaksightError, UsageError
from peaksight.records.watched_file import is_watched, read_watched
from peaksight.reporting.json import watched_to_json
from peaksight.reporting.watched import render_watched


def is_of_watched_run(path: Path) -> bool:
    """Whether `path` is a record of a process, or a directory."""
    return path.is_dir() or is_watched(path)


def publish_watched(path: Path, to: Destinations, output: Output) -> None:
    """Print the report of the records at `path`, unless a file takes stdout, and write the files asked for.

    Raises:
        UsageError: there are no records, or it is to be exported.
    """
    if to.form != TEXT:
        raise UsageError(
            f"Can't export a watched run as {to.form}: its records have steps, not allocations. Use --json or --html.",
            slug="watched-export",
        )
    report = build_watched_report([read_watched(file) for file in _records(path)])
    answer = Answer(
        render=partial(render_watched, report),
        json=partial(watched_to_json, report),
        page=partial(watched_page, report),
    )
    publish_answer(answer, to, output)


def write_watched_page(directory: Path, page: Path, output: Output) -> None:
    """Write the page of the records in `directory` to `page`; where that fails it is said, for the script has run."""
    try:
        report = build_watched_report([read_watched(file) for file in _records(directory)])
        write_file(page, lambda path: path.write_bytes(watched_page(report).encode(errors="replace")), output)
    except PeaksightError as error:
        output.warn(str(error))


def _records(path: Path) -> list[Path]:
    found = [file for file in sorted(path.rglob("*.jsonl")) if is_watched(file)] if path.is_dir() else [path]
    if not found:
        raise UsageError(
            f"There is nothing of a watched run in {path}: name the directory that `peaksight watch` wrote to, or the "
            "logs.",
            slug="nothing-watched",
        )
    return found
