"""The file of a watched process: lines of JSON, of which the first tells whose it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from peaksight.errors import CaptureFileError
from peaksight.records.watched import (
    WATCH_SCHEMA,
    ExpectationCheck,
    Line,
    Watched,
    WatchedCard,
    WatchedEnd,
    WatchedEvent,
    WatchedProcess,
    WatchedScalar,
    WatchedStep,
)

_KINDS: dict[str, type] = {
    "card": WatchedCard,
    "step": WatchedStep,
    "event": WatchedEvent,
    "scalar": WatchedScalar,
    "expectation": ExpectationCheck,
    "end": WatchedEnd,
}
_FIELDS = {"card": "cards", "step": "steps", "event": "events", "scalar": "scalars", "expectation": "expectations"}
_BEGINNING = b'{"line":"process","schema":"peaksight.watch/'


class _Head(msgspec.Struct):
    line: str


def is_watched(path: Path) -> bool:
    """Whether `path` begins as such a file does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING


def read_watched(path: Path) -> Watched:
    """What the process wrote, up to where it was cut short.

    Raises:
        CaptureFileError: it is another file, or of another release's schema.
    """
    first, _, rest = path.read_bytes().partition(b"\n")
    try:
        process = msgspec.json.decode(first, type=WatchedProcess)
    except msgspec.MsgspecError as error:
        raise CaptureFileError(
            f"Can't read '{path}': it is no file of `peaksight watch` ({error}); give one of those in its directory.",
            slug="watched-file",
        ) from error
    if process.schema != WATCH_SCHEMA:
        raise CaptureFileError(
            f"Can't read '{path}': its schema is {process.schema!r}, not {WATCH_SCHEMA!r}; read it with peaksight "
            f"{process.peaksight}.",
            slug="watched-file",
        )
    found: dict[str, list[Any]] = {field: [] for field in _FIELDS.values()}
    end = None
    for line in _lines(rest):
        if isinstance(line, WatchedEnd):
            end = line
        else:
            found[_FIELDS[line.line]].append(line)
    return Watched(process=process, end=end, **{field: tuple(lines) for field, lines in found.items()})


def _lines(content: bytes) -> Iterator[Line]:
    """Those that are whole and of a kind that this release knows."""
    for text in content.splitlines():
        try:
            kind = _KINDS.get(msgspec.json.decode(text, type=_Head).line)
            if kind is not None:
                yield msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError:
            continue
