"""`--format`: how an answer is printed where it is not a person who reads it."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console

from peaksight.cli.output import Output
from peaksight.reporting.github import Locate

TEXT, GITHUB, MARKDOWN = "text", "github", "markdown"
FORMATS = (TEXT, GITHUB)

format_option = click.option(
    "--format",
    "form",
    type=click.Choice((*FORMATS, MARKDOWN)),
    default=TEXT,
    show_default=True,
    help="github adds annotations, and a summary where GITHUB_STEP_SUMMARY names a file; markdown is that summary.",
)


def print_for_github(
    annotations: Iterable[str], summary: str, render: Callable[[Console], None] | None, output: Output
) -> None:
    """Annotations and, folded, the page of `render`; the summary is appended to that of the job.

    Where JSON takes stdout there is no `render`, and annotations go to stderr: GitHub reads them there as well.
    """
    lines = "".join(f"{line}\n" for line in annotations)
    if render is None:
        output.pass_on(lines)
    else:
        output.print(f"{lines}::group::peaksight\n")
        output.draw(render)
        output.print("::endgroup::\n")
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        _append(Path(path), summary, output)


def located(target: str) -> Locate:
    """Finds lines of the script `target`, whose reports name files by its folder or by the working directory."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    folders = (Path(target).parent, Path())

    def locate(at: str) -> tuple[str, int] | None:
        name, _, line = at.rpartition(":")
        found = next((path for folder in folders if name and (path := folder / name).is_file()), None)
        if found is None or not line.isdigit():
            return None
        path = found.resolve()
        return (path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)), int(line)

    return locate


def script_of(argv: Sequence[str]) -> str:
    """The script of a command as reports print it, empty for a module."""
    return argv[0] if argv and argv[0] != "-m" else ""


def _append(path: Path, text: str, output: Output) -> None:
    """A summary that cannot be written is no reason to give another answer."""
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        output.warn(f"no summary in {path}: {error.strerror}")
