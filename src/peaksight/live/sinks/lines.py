"""Lines of JSON in a file of this process: appended, each written at once."""

import itertools
import os
from dataclasses import fields
from pathlib import Path
from typing import get_args

from peaksight.records.encoding import encode_json
from peaksight.records.watched import Line, WatchedProcess

_FIELDS = {kind: [field.name for field in fields(kind)] for kind in get_args(Line)}


class LinesSink:
    """Writes to a new file in a directory; a line that was written survives whatever ends the process."""

    def __init__(self, directory: Path, process: WatchedProcess) -> None:
        """Make the file, and the directory if there is none.

        Raises:
            OSError: the system does not let it.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.path, self._file = _new_file(directory, f"rank{process.rank}.{process.host}.{process.pid}")
        self.name = str(self.path)
        self.write(process)

    def write(self, line: Line) -> None:
        """Append `line`.

        Raises:
            OSError: as when the disk is full.
        """
        known = {name: value for name in _FIELDS[type(line)] if (value := getattr(line, name)) is not None}
        content = encode_json(known) + b"\n"
        if os.write(self._file, content) < len(content):
            raise OSError("No space left on device")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _new_file(directory: Path, name: str) -> tuple[Path, int]:
    """One that nobody has: another run may have had the same number of a process."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
    for number in itertools.count(1):
        path = directory / (f"{name}.jsonl" if number == 1 else f"{name}-{number}.jsonl")
        try:
            return path, os.open(path, flags, 0o644)
        except FileExistsError:
            continue
    raise AssertionError("there is always another number")
