"""The commands that pages show, and what they print: found, run, compared, and written anew.

In a fenced block that is called `console`, a line that begins with `$ ` is a command, with the next line if it ends
with a backslash; the lines below are what it prints on stdout. `...` alone in a line stands for any lines. A command
without lines below it may print anything. A command that no test runs says so in a comment that the reader sees:
`# not tested: needs a GPU`.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Why a command may be left out of the tests. Whatever else is given as a reason fails them.
REASONS = {
    "needs a GPU",
    "needs a network",
    "needs a history of commits",
    "needs JAX",
    "takes long",
}
ANY_LINES = "..."
_FENCE = re.compile(r"^ *```")
_COMMENT = re.compile(r"\s+# (?:.*?\bnot tested: (.+)|.*)$")
# Times of the machine, releases, dates.
_SCRUBS = (
    (re.compile(r"\b\d+(\.\d+)? s\b"), "N s"),
    (re.compile(r"\b(torch|device rules) \d[\w.+]*"), r"\1 RELEASE"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DATE"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command on a page, without its comment.

    `first` and `last` are the lines of what it prints, as a range of indices of the page's lines; `shown` is what
    stands there. `reason` says why no test runs it, if none does.
    """

    text: str
    first: int
    last: int
    shown: tuple[str, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and how it ended."""

    stdout: str
    stderr: str
    code: int


def commands_of(page):
    """The commands of a page, in their order."""
    lines, inside, found = page.splitlines(), None, []
    for number, line in enumerate([*lines, "```"]):
        is_fence = _FENCE.match(line)
        if found and found[-1][1] is None and (is_fence or line.startswith("$ ")):
            found[-1][1] = number
        if is_fence:
            inside = None if inside is not None else line.strip().removeprefix("```")
        elif inside == "console" and line.startswith("$ "):
            found.append([number, None])
    return [_command(lines, start, end) for start, end in found]


def _command(lines, start, end):
    first = start + 1
    while lines[first - 1].endswith("\\"):
        first += 1
    text = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines[start:first])).removeprefix("$ ")
    comment = _COMMENT.search(text)
    return Command(_COMMENT.sub("", text), first, end, tuple(lines[first:end]), comment and comment[1])


def run(text, folder):
    """Run a command as a shell does, in `folder`, on a terminal of 80 columns that is none."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = os.environ | {"PATH": programs, "COLUMNS": "80", "PYTHONUTF8": "1", "HF_HUB_OFFLINE": "1"}
    words = ["bash", "-c", text]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=600, stdin=subprocess.DEVNULL
    )
    return Done(done.stdout, done.stderr, done.returncode)


def is_an_answer(text, code):
    """Whether the command did what it is for: `peaksight` says no with 1, and cannot tell with 2."""
    return code == 0 or (code == 1 and text.startswith("peaksight "))


def agrees(shown, stdout):
    """Whether `stdout` is what the page shows, but for times, releases and what `...` stands for."""
    lines = (r"(?:.*\n)*?" if line.strip() == ANY_LINES else re.escape(_scrub(line)) + r"\n" for line in shown)
    printed = "".join(_scrub(line) + "\n" for line in stdout.rstrip().splitlines())
    return re.fullmatch("".join(lines), printed) is not None


def _scrub(line):
    for pattern, word in _SCRUBS:
        line = pattern.sub(word, line)
    return line.rstrip()


def renewed(shown, stdout):
    """What the page should show: what was printed, with `...` where the page has it, as far as the places are found.

    A part between two `...` is found by its first and its last line, whatever their numbers are; where one of them is
    gone, all is shown, for a person to cut.
    """
    printed, position, lines = stdout.rstrip().splitlines(), 0, []
    masked = [_masked(line) for line in printed]
    for number, part in enumerate(_parts(shown)):
        lines += [ANY_LINES] * (number > 0)
        if part:
            try:
                start = masked.index(_masked(part[0]), position)
                position = masked.index(_masked(part[-1]), start) + 1
            except ValueError:
                return printed
            lines += printed[start:position]
    return lines


def _parts(shown):
    parts = [[]]
    for line in shown:
        if line.strip() == ANY_LINES:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def _masked(line):
    return " ".join(re.sub(r"[-+]?\d[\d.,:]*|[█░│]+|[KMG]iB", "", line).split())


def rewrite(page, printed):
    """The page with what its commands print today; `printed` has the stdout of each by its text."""
    lines = page.splitlines()
    for command in reversed(commands_of(page)):
        if command.shown and command.text in printed and not agrees(command.shown, printed[command.text]):
            lines[command.first : command.last] = renewed(command.shown, printed[command.text])
    return "\n".join(lines) + "\n"
