"""The commits of a range, and a working tree of each in a temporary directory."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from peaksight.cli.script_words import Words
from peaksight.errors import UsageError
from peaksight.records import Capture

_OUR_PLACE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit of the person's repository."""

    id: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A place for the files of one commit after another, `root`, beside the working tree `original`."""

    root: Path
    original: Path

    @contextmanager
    def holding(self, commit: Commit) -> Iterator[None]:
        """With the files of `commit` in here: new ones each time, with no bytecode of another."""
        _git("worktree", "add", "--quiet", "--detach", str(self.root), commit.id)
        try:
            yield
        finally:
            _git("worktree", "remove", "--force", str(self.root))

    @property
    def directory(self) -> Path:
        """What the working directory is in there, which the commit need not have."""
        return Path(self._moved(os.getcwd()))

    @property
    def search_path(self) -> list[str]:
        """`sys.path` with the folders of this commit: not that of peaksight, nor of what no commit has, as packages."""
        moved = {entry: self._moved(entry) for entry in sys.path if Path(entry) != _OUR_PLACE}
        return [moved[entry] if entry in moved and os.path.exists(moved[entry]) else entry for entry in sys.path]

    def words(self, words: Words) -> Words:
        """`words` of a command, of which those that name a script by its absolute path name the one in here."""
        return tuple(self._moved(word) if word.endswith(".py") else word for word in words)

    def shown(self, source: str | None) -> str | None:
        """A line of this commit without the place of the checkout."""
        return None if source is None else source.removeprefix(f"{self.root}{os.sep}")

    def left_by(self, capture: Capture) -> str | None:
        """A file of the working tree that `capture` ran instead of this commit's, None if there is none."""
        files = {line.at.rpartition(":")[0] for line in capture.source_lines}
        return next((file for file in sorted(files) if os.path.isabs(file) and self._moved(file) != file), None)

    def _moved(self, path: str) -> str:
        """`path` in here if it is an absolute one into the repository, by whatever links."""
        real = Path(os.path.realpath(path))
        if not os.path.isabs(path) or not real.is_relative_to(self.original) or real.is_relative_to(self.root):
            return path
        return str(self.root / real.relative_to(self.original))


class Repository:
    """The repository of the working directory, in which nothing is changed."""

    def __init__(self) -> None:
        """Find it; UsageError where there is none."""
        self.root = Path(_git("rev-parse", "--show-toplevel").strip())

    def commits(self, range_: str) -> list[Commit]:
        """The commits of `range_` (`main~5..main`), oldest first: of merges the first parent is followed.

        In front of them is the one that they start after, if there is one.
        """
        if ".." not in range_ or "..." in range_ or range_.startswith("-"):
            raise UsageError(f"{range_!r} is no range of commits: write two, as in main~5..main.", slug="commits")
        found = _commits("--first-parent", "--reverse", range_, "--")
        if not found:
            raise UsageError(f"There is no commit in {range_!r}: the older one comes first.", slug="commits")
        return _commits("--max-count=2", "--first-parent", "--reverse", found[0].id, "--")[:-1] + found

    @contextmanager
    def checkout(self) -> Iterator[Checkout]:
        """A place for its commits in a temporary directory."""
        with TemporaryDirectory(prefix="peaksight-") as folder:
            yield Checkout(root=Path(folder).resolve() / self.root.name, original=self.root)


def _commits(*words: str) -> list[Commit]:
    lines = _git("log", "--format=%H %s", "--no-show-signature", *words).rstrip("\n").split("\n")
    return [Commit(id=line.partition(" ")[0], subject=line.partition(" ")[2]) for line in lines if line]


def _git(*words: str) -> str:
    """What git prints, without the person's hooks."""
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *words]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, errors="replace").stdout
    except OSError as error:
        raise UsageError("Can't look at commits: git is not installed; install it.", slug="commits") from error
    except subprocess.CalledProcessError as error:
        cause = error.stderr.strip().splitlines()[-1:] or [f"exit code {error.returncode}"]
        raise UsageError(
            f"Can't look at commits: git says {cause[0]!r}; try `git log` here.", slug="commits"
        ) from error
