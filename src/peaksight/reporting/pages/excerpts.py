"""What the script says around a line, for a page."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from peaksight.records import Finding

NUM_EXCERPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcerptLine:
    """A line of a file, as it is written there; `is_named` where it is what the excerpt is about."""

    number: int
    text: str
    is_named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Lines of a file around those that reports name, as `at` (`train.py:88`, or several with `and`)."""

    at: str
    lines: tuple[ExcerptLine, ...]


def excerpts_of(finding: Finding, excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Those of the lines that `finding` is about or names, in its order; those that overlap are one."""
    named = {excerpt.at: excerpt for excerpt in excerpts}
    found: list[Excerpt] = []
    for excerpt in [named[at] for at in lines_named(finding) if at in named]:
        near = next((other for other in found if _overlap(other, excerpt)), None)
        if near is None:
            found.append(excerpt)
        else:
            found[found.index(near)] = _joined(near, excerpt)
    return found[:NUM_EXCERPTS]


def _overlap(one: Excerpt, other: Excerpt) -> bool:
    """Whether both show a line of the same file."""
    same_file = _file(one) == _file(other)
    return same_file and not {line.number for line in one.lines}.isdisjoint(line.number for line in other.lines)


def _joined(one: Excerpt, other: Excerpt) -> Excerpt:
    lines = {line.number: line for line in sorted(one.lines + other.lines, key=lambda line: line.is_named)}
    return Excerpt(at=f"{one.at} and {other.at}", lines=tuple(lines[number] for number in sorted(lines)))


def _file(excerpt: Excerpt) -> str:
    return excerpt.at.rpartition(" and ")[2].rpartition(":")[0]


def lines_named(finding: Finding) -> list[str]:
    """The lines (`train.py:88`) that `finding` is about or names in its sentences, each once."""
    return list(dict.fromkeys(filter(None, (finding.at, *_in_words(finding)))))


def _in_words(finding: Finding) -> Iterator[str]:
    for sentence in (finding.title, *finding.evidence):
        yield from re.findall(r"[\w./\\-]+\.py:\d+", sentence)
