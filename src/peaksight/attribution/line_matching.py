"""Which line of one version of a script is which line of another: by what it says, and by its number else."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import NamedTuple

from peaksight.records import Capture, LineMatch, SourceLine

# From where on two lines are alike, in difflib's measure: half of both is the same.
_ALIKE = 0.5
# What a statement assigns to, or a keyword argument on a line of its own.
_TARGET = re.compile(r"[\w.,\[\] ]+?(?= ?[-+*/@]?=[^=])")


class Match(NamedTuple):
    """The line of B (`train.py:90`), and how it was found."""

    source: str
    how: LineMatch


class _Line(NamedTuple):
    """A line that allocated; `said` is None where its text is not known."""

    source: str
    number: int
    said: SourceLine | None

    @property
    def text(self) -> str:
        return self.said.text if self.said else ""


_Pair = tuple[_Line, _Line]


def match_lines(a: Capture, b: Capture) -> dict[str, Match]:
    """For the lines of A (`train.py:88`) that are in B too, which ones those are.

    Files are the same if they have the same name or, where a name is new, the same text, and so are the two scripts,
    whatever they are called. Of a file that changed, the lines that allocated are matched in their order by what they
    say; between lines that say the same, those that are alike or assign to the same name are matched as edited.

    Limitations:
        Of lines that were moved past each other, some are not found. Nor is a file that was renamed and edited.
    """
    a_files, b_files = _files(a), _files(b)
    files = _renamed(a_files, b_files) | _scripts(a, b)
    found: dict[str, Match] = {}
    for file, lines in a_files.items():
        found.update(_match_file(lines, b_files.get(files.get(file, file), [])))
    return found


def _files(capture: Capture) -> dict[str, list[_Line]]:
    """The lines of each file that allocated, in their order."""
    said = {line.at: line for line in capture.source_lines}
    files = defaultdict(list)
    for source in {allocation.source for allocation in capture.allocations} - {""}:
        file, _, number = source.rpartition(":")
        files[file].append(_Line(source, int(number), said.get(source)))
    return {file: sorted(files[file], key=lambda line: line.number) for file in sorted(files)}


def _renamed(a: dict[str, list[_Line]], b: dict[str, list[_Line]]) -> dict[str, str]:
    """What files of A are called in B that have the same text and a name which only one of the runs knows."""
    new = {digest: file for file in b if file not in a for digest in _digests(b[file])}
    return {file: new[digest] for file in a if file not in b for digest in _digests(a[file]) if digest in new}


def _scripts(a: Capture, b: Capture) -> dict[str, str]:
    """What the script of A is called in B; what bears the name of B's script in A is another file."""
    a_script, b_script = _script(a.argv), _script(b.argv)
    return {b_script: "", a_script: b_script} if a_script and b_script else {}


def _script(argv: Sequence[str]) -> str:
    """The script as the lines of a capture name it, empty for a module."""
    return "" if argv[:1] in ((), ("-m",)) else PurePath(argv[0]).name


def _match_file(a: list[_Line], b: list[_Line]) -> Iterator[tuple[str, Match]]:
    a_digests, b_digests = _digests(a), _digests(b)
    if a_digests and b_digests and a_digests != b_digests:
        yield from _by_text([line for line in a if line.said], [line for line in b if line.said])
        return
    how = LineMatch.SAME_FILE if a_digests and b_digests else LineMatch.NUMBER
    there = {line.number: line.source for line in b}
    yield from ((line.source, Match(there[line.number], how)) for line in a if line.number in there)


def _digests(lines: list[_Line]) -> set[str]:
    """Of the file of `lines`, none where its text is not known."""
    return {line.said.file_sha256 for line in lines if line.said}


def _by_text(a: list[_Line], b: list[_Line]) -> Iterator[tuple[str, Match]]:
    same = SequenceMatcher(None, [line.text for line in a], [line.text for line in b], autojunk=False)
    for tag, first, end, b_first, b_end in same.get_opcodes():
        if tag == "equal":
            pairs = zip(a[first:end], b[b_first:b_end], strict=True)
            yield from _matches(pairs, LineMatch.TEXT)
        elif tag == "replace":
            yield from _matches(_alike(a[first:end], b[b_first:b_end]), LineMatch.EDITED)


def _matches(pairs: Iterator[_Pair], how: LineMatch) -> Iterator[tuple[str, Match]]:
    return ((line.source, Match(other.source, how)) for line, other in pairs)


def _alike(a: list[_Line], b: list[_Line]) -> Iterator[_Pair]:
    """Each line of `a` with the first of `b` that is like it, behind those that are taken."""
    taken = 0
    for line in a:
        place = next((place for place in range(taken, len(b)) if _are_alike(line.text, b[place].text)), None)
        if place is not None:
            yield line, b[place]
            taken = place + 1


def _are_alike(one: str, other: str) -> bool:
    """Whether both assign to the same name, or half of the two is the same."""
    targets = _TARGET.match(one), _TARGET.match(other)
    if targets[0] and targets[1] and targets[0][0] == targets[1][0]:
        return True
    likeness = SequenceMatcher(None, one, other, autojunk=False)
    return likeness.quick_ratio() >= _ALIKE and likeness.ratio() >= _ALIKE
