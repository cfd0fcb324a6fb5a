"""What the script says around a line, for a page."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from peaksight.records import Finding

NUM_EXCERPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptLine:
    """A line of a file, as it is written there."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """The lines around the line `number`, which reports call `at` (`train.py:88`)."""

    at: str
    number: int
    lines: tuple[ExcerptLine, ...]


def excerpts_of(finding: Finding, excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Those of the lines that `finding` is about or names, in its order."""
    named = {excerpt.at: excerpt for excerpt in excerpts}
    return [named[at] for at in lines_named(finding) if at in named][:NUM_EXCERPTS]


def lines_named(finding: Finding) -> list[str]:
    """The lines (`train.py:88`) that `finding` is about or names in its sentences, each once."""
    return list(dict.fromkeys(filter(None, (finding.at, *_in_words(finding)))))


def _in_words(finding: Finding) -> Iterator[str]:
    for sentence in (finding.title, *finding.evidence):
        yield from re.findall(r"[\w./\\-]+\.py:\d+", sentence)
