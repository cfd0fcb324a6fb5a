"""What `--against` names: another command, or a revision of the script's own repository."""

import io
import os
import shlex
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

from peaksight.cli.script_words import script_command
from peaksight.errors import UsageError
from peaksight.records import ScriptCommand

_OUR_PLACE = Path(__file__).parents[2]


def command_against(against: str, changed: ScriptCommand, more: tuple[str, ...], directory: Path) -> ScriptCommand:
    """The original: the command in `against` with the arguments `more`, or `changed` as a revision had it.

    Of a revision the files are put into `directory`. The working directory stays the person's, so that data that git
    does not know is found; what lies in the repository and is imported is that of the revision.
    """
    words = shlex.split(against)
    root = _root_of(changed) if len(words) == 1 and not Path(words[0]).exists() else None
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{words[0]}^{{commit}}") if root else ""
    if root and commit:
        return _as_it_was(commit.strip(), changed, root, directory)
    return script_command((*words, *more))


def _root_of(command: ScriptCommand) -> Path | None:
    folder = Path.cwd() if command.is_module else Path(command.target).resolve().parent
    root = _git(folder, "rev-parse", "--show-toplevel") if folder.is_dir() else ""
    return Path(root.strip()).resolve() if root else None


def _as_it_was(commit: str, command: ScriptCommand, root: Path, directory: Path) -> ScriptCommand:
    script = Path(command.target).resolve()
    if command.is_module or not script.is_relative_to(root):
        raise UsageError(
            f"Can't take {command.target!r} from a revision: it is no file of this repository. Name its file.",
            slug="not-in-repository",
        )
    archive = subprocess.run(["git", "-C", str(root), "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")
    (directory / ".git").touch()  # so that it is known as the root of a repository
    there = directory / script.relative_to(root)
    if not there.exists():
        raise UsageError(
            f"Can't verify against {commit[:10]}: it has no {script.relative_to(root)}. Name a later revision.",
            slug="not-in-revision",
        )
    path = [_moved(Path(entry), root, directory) for entry in sys.path]
    path += [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    variables = {"PYTHONPATH": os.pathsep.join(entry for entry in path if entry)}
    return replace(command, target=str(there), environment=(*command.environment, *variables.items()))


def _moved(entry: Path, root: Path, directory: Path) -> str:
    """Where an entry of `sys.path` that lies in the repository is in the revision, empty for any other."""
    if not entry.is_absolute() or not entry.is_relative_to(root) or entry == _OUR_PLACE:
        return ""
    moved = directory / entry.relative_to(root)
    return str(moved) if moved.is_dir() else ""


def _git(folder: Path, *words: str) -> str:
    """What git prints, nothing where it fails or is missing."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
