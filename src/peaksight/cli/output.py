"""Our own output, kept apart from the script's."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

import click
from rich.console import Console

from peaksight.cli.configured import told
from peaksight.live.sinks.in_place import InPlace, wrapped

# What our pages have beyond ASCII, for where it cannot be written.
_IN_ASCII = str.maketrans("\u2026\u00b7\u2022\u2502\u2500\u2588\u2591\u00d7\u2212", "~-*|-#:x-")
_TRAILING_SPACES = re.compile(r" +$", re.MULTILINE)
_ALL_UP_TO = 3

# The file name for stdout.
STDOUT = Path("-")

quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print the answer alone: no progress, no notes, no prints of SCRIPT."
)


class Output:
    """This process's streams, held from before the script runs: a script may replace `sys.stdout`.

    With `quiet` there is the answer, and what is wrong.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        """Take the streams as they are."""
        self.quiet = quiet
        self._stdout = sys.stdout
        self._stderr = sys.stderr
        self._line = None if quiet else InPlace.on_terminal()
        if from_settings := told():
            self.say(from_settings)

    def say(self, message: str) -> None:
        """A note: one line on stderr, wrapped where that is a terminal."""
        if not self.quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """As `say`, of what is wrong: it is said to those who want quiet, too."""
        self._erase()
        print(wrapped(f"peaksight: {message}", self._stderr), file=self._stderr, flush=True)

    def progress(self, text: str, number: int = 0) -> None:
        """How far long work is, the `number`th time of many.

        On a terminal in a line that stays in place; in a log the first ones, and of those that follow ever fewer.
        """
        if self.quiet:
            return
        if self._line:
            self._line.draw(f"peaksight: {text}")
        elif _is_told(number):
            self.say(text)

    def pass_on(self, line: str) -> None:
        """A line that another process printed, on stderr as it is."""
        self._erase()
        print(line, end="", file=self._stderr, flush=True)

    def print(self, text: str) -> None:
        """`text` on stdout as it is."""
        self._erase()
        with self._read_or_not():
            print(text, end="", file=self._stdout, flush=True)

    def write(self, content: bytes) -> None:
        """`content` on stdout as it is."""
        self._erase()
        with self._read_or_not():
            self._stdout.flush()
            self._stdout.buffer.write(content)
            self._stdout.buffer.flush()

    def draw(self, render: Callable[[Console], None]) -> None:
        """What `render` prints, on stdout; a file name that its encoding cannot show has question marks.

        Where that is no terminal, lines end without the spaces of the tables.
        """
        if isinstance(self._stdout, TextIOWrapper):
            self._stdout.reconfigure(errors="replace")
        console = Console(file=self._stdout, highlight=False)
        with console.capture() as captured:
            render(console)
        text = captured.get() if console.is_terminal else _TRAILING_SPACES.sub("", captured.get())
        self.print(_writable(text, console.encoding))

    @contextmanager
    def _read_or_not(self) -> Iterator[None]:
        """Go on where what reads stdout has enough of it, as `head` has: files are yet to be written, the exit code
        is the answer. From then on stdout goes nowhere.
        """
        try:
            yield
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stdout.fileno())
            os.close(nowhere)

    def _erase(self) -> None:
        if self._line:
            self._line.erase()


class Tried:
    """Says what was tried, and counts it."""

    def __init__(self, output: Output) -> None:
        """Nothing yet."""
        self._output, self._number = output, 0

    def __call__(self, title: str) -> None:
        """One more."""
        self._number += 1
        self._output.progress(f"tried {self._number}: {title}", self._number)


def _is_told(number: int) -> bool:
    """Whether the `number`th message of a kind is one for a log: the first, and then 5, 10, 20, 50, 100 and so on."""
    return number <= _ALL_UP_TO or str(number).rstrip("0") in ("1", "2", "5")


def _writable(text: str, encoding: str) -> str:
    """`text` with signs that `encoding` has."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_IN_ASCII)
    return text


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Send stdout to stderr at the level of file descriptors, so that subprocesses of the script follow."""
    with _stdout_to(2):
        yield


@contextmanager
def stdout_nowhere() -> Iterator[None]:
    """As `stdout_on_stderr`, to where nothing reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        with _stdout_to(nowhere):
            yield
    finally:
        os.close(nowhere)


@contextmanager
def _stdout_to(descriptor: int) -> Iterator[None]:
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
