"""What the script says at the lines that allocated, so that another version of it can be compared."""

import hashlib
import os
import tokenize
from collections import defaultdict
from collections.abc import Iterable

from peaksight.records import SourceLine

_MAX_LENGTH = 200


def source_lines_at(sources: Iterable[str], script_dir: str) -> tuple[SourceLine, ...]:
    """The lines named `sources` (`train.py:88`, relative to `script_dir`), in the order of their files and numbers.

    A file that cannot be read has none, nor has a line that is not there.
    """
    numbers = defaultdict(set)
    for source in filter(None, sources):
        file, _, number = source.rpartition(":")
        numbers[file].add(int(number))
    return tuple(
        line for file in sorted(numbers) for line in _lines_of(file, os.path.join(script_dir, file), numbers[file])
    )


def _lines_of(name: str, path: str, numbers: Iterable[int]) -> Iterable[SourceLine]:
    text = _text(path)
    digest, lines = hashlib.sha256(text.encode(errors="replace")).hexdigest(), text.splitlines()
    for number in sorted(numbers):
        if 0 < number <= len(lines):
            said = lines[number - 1].strip()[:_MAX_LENGTH]
            yield SourceLine(at=f"{name}:{number}", text=said, file_sha256=digest)


def _text(path: str) -> str:
    """The source as Python decodes it, empty where it cannot be read: it may be made of a string, or be gone."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, ValueError):
        return ""
