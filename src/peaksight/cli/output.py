"""Our own output, kept apart from the script's."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from rich.console import Console


class Output:
    """This process's streams, held from before the script runs: a script may replace `sys.stdout`."""

    def __init__(self) -> None:
        """Take the streams as they are."""
        self._stdout = sys.stdout
        self._stderr = sys.stderr

    def say(self, message: str) -> None:
        """One line on stderr."""
        print(f"peaksight: {message}", file=self._stderr, flush=True)

    def pass_on(self, line: str) -> None:
        """A line that another process printed, on stderr as it is."""
        print(line, end="", file=self._stderr, flush=True)

    def print(self, text: str) -> None:
        """`text` on stdout as it is."""
        print(text, end="", file=self._stdout, flush=True)

    def draw(self, render: Callable[[Console], None]) -> None:
        """What `render` prints, on stdout; a file name that its encoding cannot show has question marks."""
        if isinstance(self._stdout, TextIOWrapper):
            self._stdout.reconfigure(errors="replace")
        render(Console(file=self._stdout, highlight=False))


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Send stdout to stderr at the level of file descriptors, so that subprocesses of the script follow."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
