"""Excerpts of the script for a page: of files only where they say what they said when the script ran."""

import hashlib
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

from peaksight.cli.formats import script_of
from peaksight.records import Capture, Report, SourceLine
from peaksight.reporting.pages.excerpts import Excerpt, ExcerptLine, lines_named

_NUM_AROUND = 3


def excerpts_for(report: Report, captures: Sequence[Capture]) -> tuple[Excerpt, ...]:
    """What stands at the lines that the findings of `report` name, of which `captures` tell what they said.

    Those around them are there where the file still is what it was.
    """
    folders = (Path(script_of(report.argv)).parent, Path())
    said = {line.at: line for each in captures for line in each.source_lines}
    digests = {at.rpartition(":")[0]: line.file_sha256 for at, line in said.items()}
    named = dict.fromkeys(at for finding in report.findings or () for at in lines_named(finding))
    return tuple(found for at in named for found in _excerpts(at, folders, digests, said.get(at)))


def _excerpts(
    at: str, folders: tuple[Path, ...], digests: dict[str, str], said: SourceLine | None
) -> Iterator[Excerpt]:
    """The excerpt of `at`, if there is one: of the file, or the one line that the run remembers."""
    file, _, number = at.rpartition(":")
    lines = _lines(file, folders, digests.get(file, ""))
    first, last = max(int(number) - _NUM_AROUND, 1), min(int(number) + _NUM_AROUND, len(lines))
    if first <= int(number) <= last:
        yield Excerpt(at=at, lines=tuple(_line(each, lines[each - 1], at) for each in range(first, last + 1)))
    elif said is not None:
        yield Excerpt(at=at, lines=(_line(int(number), said.text, at),))


def _line(number: int, text: str, at: str) -> ExcerptLine:
    return ExcerptLine(number=number, text=text, is_named=at.endswith(f":{number}"))


def _lines(file: str, folders: tuple[Path, ...], digest: str) -> list[str]:
    """The lines of the file whose text has the SHA-256 `digest`, none where there is no such file any more."""
    for folder in folders:
        try:
            with tokenize.open(folder / file) as opened:
                text = opened.read()
        except (OSError, SyntaxError, ValueError):
            continue
        if hashlib.sha256(text.encode(errors="replace")).hexdigest() == digest:
            return text.splitlines()
    return []
