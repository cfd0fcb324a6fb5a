"""Writes a capsule: gzipped JSON lines, what matters most first, each whole as soon as it is written."""

import gzip
import os
import time
from pathlib import Path
from typing import Any, Final

from peaksight import __version__
from peaksight.records.capsule import CAPSULE_FORMAT, CAPSULE_VERSION, part_of
from peaksight.records.encoding import encode_json

MOST_BYTES: Final = 64 << 20
_COMPRESSION = 1


class TooLarge(Exception):
    """The capsule has the size, or took the time, that it may."""


class CapsuleFile:
    """One capsule while it is written, under another name until it is whole; what is written stays if it never is."""

    def __init__(self, path: Path, *, seconds: float, most_bytes: int = MOST_BYTES) -> None:
        """To be at `path`, in no more than about `seconds` and `most_bytes`.

        Raises:
            OSError: there cannot be one.
        """
        self._path, self._part = path, part_of(path)
        self._deadline = time.monotonic() + seconds
        self._most_bytes = most_bytes
        self._file = self._part.open("wb")
        self._packed = gzip.GzipFile("", "wb", _COMPRESSION, self._file, mtime=0)
        self._put("head", {"format": CAPSULE_FORMAT, "version": CAPSULE_VERSION, "peaksight": __version__})

    def write(self, kind: str, content: Any) -> None:
        """One line.

        Raises:
            TooLarge: no more is to be written, except `finish`.
            OSError: the disk is full, or gone.
        """
        if time.monotonic() > self._deadline or self._file.tell() > self._most_bytes:
            raise TooLarge
        self._put(kind, content)

    def finish(self, *, left_out: bool) -> None:
        """Say that this is all, and give the file its name.

        Raises:
            OSError: as `write`.
        """
        self._put("end", {"left_out": left_out})
        self._packed.close()
        self._file.close()
        os.replace(self._part, self._path)

    def abandon(self) -> None:
        """Leave what was written where it is, and a capsule that was there before in its place."""
        for file in (self._packed, self._file):
            try:
                file.close()
            except (OSError, ValueError):
                continue

    def _put(self, kind: str, content: Any) -> None:
        self._packed.write(encode_json({"line": kind, "content": content}) + b"\n")
        self._packed.flush()


def append_line(path: Path, kind: str, content: Any) -> None:
    """Add a line to a capsule that is whole.

    Raises:
        OSError: there is none, or the disk is full.
    """
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(gzip.compress(encode_json({"line": kind, "content": content}) + b"\n", _COMPRESSION, mtime=0))
