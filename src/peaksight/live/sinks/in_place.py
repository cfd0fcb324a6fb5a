"""A line at the bottom of a terminal, of which nothing is left when the script prints."""

import os
import shutil
import sys
import textwrap
from typing import Any, Self, TextIO

# Terminals that know no escape sequences.
_DUMB = ("dumb", "unknown")


def wrapped(text: str, stream: TextIO) -> str:
    """`text` at the width of a terminal, where `stream` is one; in a log it stays a line that can be searched for."""
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)


class InPlace:
    """Draws on stderr. What the script prints on either stream erases the line first; an unfinished line of the script,
    such as a progress bar, is left alone.
    """

    def __init__(self) -> None:
        """Stand in for both streams."""
        self._terminal = sys.stderr
        self._is_drawn = False
        self._at_line_start = True
        self._above = {name: _Above(getattr(sys, name), self) for name in ("stdout", "stderr")}
        for name, stream in self._above.items():
            setattr(sys, name, stream)

    @classmethod
    def on_terminal(cls) -> Self | None:
        """Of stderr, None where that is no terminal, or one without escape sequences."""
        return cls() if sys.stderr.isatty() and os.environ.get("TERM") not in _DUMB else None

    def draw(self, text: str) -> None:
        """Show `text` instead of what was drawn before, as much of it as there is room for."""
        if self._at_line_start:
            sys.stdout.flush()
            shown = text[: shutil.get_terminal_size().columns - 1]
            self._terminal.write(f"\r\x1b[2K{shown}\r")
            self._terminal.flush()
            self._is_drawn = True

    def erase(self) -> None:
        """Leave nothing of it."""
        if self._is_drawn:
            self._is_drawn = False
            self._terminal.write("\x1b[2K")
            self._terminal.flush()

    def printed(self, text: str) -> None:
        """The script is about to print `text`."""
        self.erase()
        if text:
            self._at_line_start = text.endswith("\n")

    def close(self) -> None:
        """Give the streams back where they are still ours."""
        self.erase()
        for name, stream in self._above.items():
            if getattr(sys, name) is stream:
                setattr(sys, name, stream.stream)


class _Above:
    """A stream whose text goes above the line; everything else is that of the stream."""

    def __init__(self, stream: TextIO, line: InPlace) -> None:
        self.stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.printed(text)
        return self.stream.write(text)

    def writelines(self, lines: Any) -> None:
        for text in lines:
            self.write(text)

    def __iter__(self) -> Any:
        return iter(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
