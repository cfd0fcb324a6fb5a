"""Where a report goes: what `run` and `report` share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from peaksight.cli.exports import EXPORTS, PRINTED, Run, check_output
from peaksight.cli.formats import GITHUB, MARKDOWN, TEXT, located, print_for_github, script_of
from peaksight.cli.output import STDOUT, Output
from peaksight.errors import UsageError
from peaksight.reporting import render_report, report_to_json
from peaksight.reporting.github import Locate, report_annotations

FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)
_JSON = click.Path(dir_okay=False, allow_dash=True, resolve_path=True, path_type=Path)

_FORCE = click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
all_option = click.option(
    "--all", "show_all", is_flag=True, help="Show also the causes that were examined and refuted."
)
_HTML = click.option("--html", type=FILE, metavar="FILE", help="Write the report as a web page in one file.")
_JSON_OPTION = click.option(
    "--json", type=_JSON, metavar="FILE", help="Write the report as JSON; - is all there is on stdout."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """The files to write beside the report in the terminal, None where the option was not given.

    `diff` goes beside a plan, `report` is a page in Markdown. `show_all` prints the causes that were looked for and
    refuted as well. `form` is one of `FORMATS` or `EXPORTS`; the latter go to `output`.
    """

    json: Path | None = None
    html: Path | None = None
    save: Path | None = None
    plan: Path | None = None
    diff: Path | None = None
    report: Path | None = None
    force: bool = False
    show_all: bool = False
    form: str = TEXT
    output: Path | None = None

    @property
    def exported(self) -> Path | None:
        """Where the file for another tool goes; what is text goes to stdout where nothing else is said."""
        return STDOUT if self.output is None and self.form in PRINTED else self.output

    @property
    def take_stdout(self) -> bool:
        """Whether one of them is all there is on stdout."""
        return STDOUT in (self.json, self.exported)

    def check(self) -> None:
        """Raise UsageError for a file that exists, unless `force`, and for one that cannot be written as asked."""
        given = (
            ("--json", self.json),
            ("--html", self.html),
            ("--save", self.save),
            ("--apply", self.plan),
            ("--apply", self.diff),
            ("--report", self.report),
            ("--output", self.output),
        )
        check_output(self.form, self.output)
        if self.json == self.exported == STDOUT:
            raise UsageError(
                "--json and --format both want stdout: give one of them a file, --format with --output.",
                slug="no-output",
            )
        files = [(option, path) for option, path in given if path and path != STDOUT]
        for option, path in files:
            if [each for _, each in files].count(path) > 1:
                raise _cannot_write(path, f"it is named twice; choose another file for {option}")
            if not path.parent.is_dir():
                raise _cannot_write(path, f"there is no folder {path.parent}; create it, or choose another one")
            if path.exists() and not self.force:
                raise UsageError(
                    f"{path} exists: choose another file for {option}, or pass --force to overwrite it.",
                    slug="file-exists",
                )


def destination_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Destinations` that write a report."""
    for add_option in (_FORCE, _HTML, _JSON_OPTION):
        command = add_option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found, in each form that it can be published in; `target` is the script that its lines are of.

    `summary` is Markdown, `exported` what other tools read, None where that is the summary alone.
    """

    render: Callable[[Console], None]
    json: Callable[[], str]
    page: Callable[[], str]
    annotations: Callable[[Locate], Iterable[str]] = lambda _: ()
    summary: Callable[[], str] = lambda: ""
    target: str = ""
    exported: Callable[[], bytes] | None = None

    def export(self) -> bytes:
        """What goes to `--output`."""
        return self.summary().encode(errors="replace") if self.exported is None else self.exported()


def publish(run: Run, to: Destinations, output: Output, *, shown: bool = True) -> None:
    """Print the report, unless a file takes stdout or it is not to be `shown`, and write the files asked for."""
    report = run.report
    answer = Answer(
        render=partial(render_report, report, show_all=to.show_all),
        json=partial(report_to_json, report),
        page=lambda: _page(run),
        annotations=partial(report_annotations, report),
        summary=lambda: EXPORTS[MARKDOWN](run).decode(),
        target=script_of(report.argv),
        exported=lambda: EXPORTS[to.form](run),
    )
    publish_answer(answer, to, output, shown=shown)


def publish_answer(answer: Answer, to: Destinations, output: Output, *, shown: bool = True) -> None:
    """As `publish`, for whatever a command found."""
    if to.json == STDOUT:
        output.print(answer.json())
    if to.exported == STDOUT:
        output.write(answer.export())
    if shown and to.form == GITHUB:
        render = None if to.take_stdout else answer.render
        print_for_github(answer.annotations(located(answer.target)), answer.summary(), render, output)
    elif shown and not to.take_stdout:
        output.draw(answer.render)
    _write_files(answer, to, output)


def _write_files(answer: Answer, to: Destinations, output: Output) -> None:
    if to.json and to.json != STDOUT:
        write_file(to.json, lambda path: path.write_text(answer.json(), encoding="utf-8"), output)
    if to.html:
        write_file(to.html, lambda path: path.write_bytes(answer.page().encode(errors="replace")), output)
    if to.output and to.output != STDOUT:
        write_file(to.output, lambda path: path.write_bytes(answer.export()), output)


def write_file(path: Path, write: Callable[[Path], Any], output: Output) -> None:
    """Let `write` make the file `path`, and say so; UsageError when the system does not let it."""
    try:
        write(path)
    except OSError as error:
        raise _cannot_write(path, f"{error.strerror}; choose another file") from error
    output.say(f"Wrote {path}")


def _cannot_write(path: Path, cause_and_way_out: str) -> UsageError:
    return UsageError(f"Can't write {path}: {cause_and_way_out}.", slug="cannot-write")


def _page(run: Run) -> str:
    """The page; its libraries are imported here, for few reports are one."""
    from peaksight.cli.excerpts import excerpts_for
    from peaksight.reporting.pages.report_page import report_to_html

    return report_to_html(run.report, excerpts_for(run.report, run.captures))
