"""A line at the bottom of a terminal, of which nothing is left when the script prints."""

import sys
from typing import Any, TextIO


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

    def draw(self, text: str) -> None:
        """Show `text` instead of what was drawn before."""
        if self._at_line_start:
            sys.stdout.flush()
            self._terminal.write(f"\r\x1b[2K{text}\r")
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
