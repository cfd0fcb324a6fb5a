"""The capture file: what a run recorded, as gzipped JSON lines; docs/capture-format.md describes them."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from peaksight import __version__
from peaksight.errors import CaptureFileError
from peaksight.records.capture import Capture
from peaksight.records.columns import from_columns, row_type, to_columns
from peaksight.records.encoding import encode_json

FORMAT: Final = "peaksight.capture"
VERSION: Final = 1

_ROWS_A_LINE = 50_000
_MAX_HEAD_BYTES = 4096
# The fastest level: the next ones take twice the time for a tenth of the size.
_COMPRESSION = 1

_HINTS = get_type_hints(Capture)
_ROW_TYPES = {name: row for name, hint in _HINTS.items() if (row := row_type(hint))}
# What decoding raises on lines that do not follow the format.
_NOT_UNDERSTOOD = (msgspec.MsgspecError, LookupError, TypeError, ValueError)

Room = TypeVar("Room")


class _Head(msgspec.Struct):
    """The first line."""

    format: str
    version: int
    peaksight: str = "an unknown release"


class _RoomLine(msgspec.Struct, tag_field="line", tag="room"):
    """The second line: the card and what is free on it."""

    fields: msgspec.Raw


class _CaptureLine(msgspec.Struct, tag_field="line", tag="capture"):
    """One capture without its tables, which follow."""

    fields: dict[str, msgspec.Raw]


class _TableLine(msgspec.Struct, tag_field="line", tag="table"):
    """Some rows of a table of the capture above."""

    name: str
    columns: dict[str, msgspec.Raw]


class _EndLine(msgspec.Struct, tag_field="line", tag="end"):
    """The last line: the SHA-256 of all lines before it."""

    sha256: str


def write_capture_file(path: Path, captures: Sequence[Capture], room: Any) -> None:
    """Write `captures` of one command, and the dataclass `room` that they were judged for, to `path`.

    Raises:
        OSError: the file cannot be written.
    """
    digest = hashlib.sha256()
    with path.open("wb") as file, gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as packed:
        for line in _lines(captures, room):
            packed.write(line)
            digest.update(line)
        packed.write(_line({"line": "end", "sha256": digest.hexdigest()}))


def read_capture_file(path: Path, room: type[Room]) -> tuple[tuple[Capture, ...], Room]:
    """The captures in `path`, and what they were judged for as a `room`.

    Raises:
        CaptureFileError: the file is no capture, is cut short, was changed, or is of a later version.
    """
    head = _read_head(path)
    try:
        room_line, *lines = _read_lines(path)
        return _captures(lines), msgspec.json.decode(msgspec.json.decode(room_line, type=_RoomLine).fields, type=room)
    except _NOT_UNDERSTOOD as error:
        raise CaptureFileError(
            f"Can't read the capture '{path}': peaksight {head.peaksight} wrote it, this is {__version__}, and they "
            f"differ ({error}); read it with that release.",
            slug="capture-version",
        ) from error


def _lines(captures: Sequence[Capture], room: Any) -> Iterator[bytes]:
    yield _line(_Head(format=FORMAT, version=VERSION, peaksight=__version__))
    yield _line({"line": "room", "fields": room})
    for capture in captures:
        values = {name: getattr(capture, name) for name in _HINTS}
        tables = {name: values.pop(name) for name in _ROW_TYPES}
        yield _line({"line": "capture", "fields": values})
        for name, rows in tables.items():
            for first in range(0, len(rows), _ROWS_A_LINE):
                columns = to_columns(rows[first : first + _ROWS_A_LINE])
                yield _line({"line": "table", "name": name, "columns": columns})


def _line(content: Any) -> bytes:
    return encode_json(content) + b"\n"


def _read_head(path: Path) -> _Head:
    """The first line, read alone: a later version may have changed everything behind it."""
    try:
        with gzip.open(path) as file:
            head = msgspec.json.decode(file.readline(_MAX_HEAD_BYTES), type=_Head)
        if head.format != FORMAT:
            raise ValueError(f"its format is {head.format!r}")
    except EOFError as error:
        raise _cut_short(path) from error
    except zlib.error as error:
        raise _changed(path) from error
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise CaptureFileError(
            f"'{path}' is no capture ({error}): give a file that `peaksight run --save` wrote.", slug="not-a-capture"
        ) from error
    if head.version > VERSION:
        raise CaptureFileError(
            f"Can't read the capture '{path}': it is of version {head.version}, written by peaksight "
            f"{head.peaksight}, and this is {__version__}, which reads up to version {VERSION}: update peaksight.",
            slug="capture-version",
        )
    return head


def _read_lines(path: Path) -> list[bytes]:
    """The lines between the first and the last, once the checksum is right."""
    try:
        content = gzip.decompress(path.read_bytes())
    except EOFError as error:
        raise _cut_short(path) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _changed(path) from error
    *lines, end = content.splitlines(keepends=True)
    if not end.startswith(b'{"line":"end"'):
        raise _cut_short(path)
    if end != _line(_EndLine(sha256=hashlib.sha256(content[: -len(end)]).hexdigest())):
        raise _changed(path)
    return lines[1:]


def _captures(lines: list[bytes]) -> tuple[Capture, ...]:
    found: list[dict[str, Any]] = []
    for line in lines:
        match msgspec.json.decode(line, type=_CaptureLine | _TableLine):
            case _CaptureLine(fields):
                found.append(_plain_fields(fields) | dict.fromkeys(_ROW_TYPES, ()))
            case _TableLine(name, columns) if name in _ROW_TYPES:
                found[-1][name] += tuple(from_columns(_ROW_TYPES[name], columns))
    return tuple(Capture(**values) for values in found)


def _plain_fields(fields: dict[str, msgspec.Raw]) -> dict[str, Any]:
    return {name: msgspec.json.decode(raw, type=_HINTS[name]) for name, raw in fields.items() if name in _HINTS}


def _cut_short(path: Path) -> CaptureFileError:
    return CaptureFileError(
        f"Can't read the capture '{path}': it is cut short; copy it again, or save the run again.",
        slug="capture-cut-short",
    )


def _changed(path: Path) -> CaptureFileError:
    return CaptureFileError(
        f"Can't read the capture '{path}': it was changed after it was written, its checksum is wrong; copy it again, "
        "or save the run again.",
        slug="capture-changed",
    )
