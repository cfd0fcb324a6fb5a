"""Files that are written over so that nothing is lost: git has them as they were, or a copy does."""

import os
import subprocess
import tempfile
from pathlib import Path
from shutil import copymode

from peaksight.errors import UsageError

_KEPT = ".orig"


def check_can_keep(path: Path) -> None:
    """Check that the file `path`, if there is one, can be kept as it is.

    Raises:
        UsageError: git does not have it, and there is something else where its copy would go.
    """
    copy = copy_of(path) if path.is_file() else None
    if copy is not None and copy.exists() and copy.read_bytes() != path.read_bytes():
        raise UsageError(
            f"Can't keep {path} as it is: {copy} exists, and git does not have the file. Commit the file, or move "
            f"{copy.name} away.",
            slug="write-kept",
        )


def copy_of(path: Path) -> Path | None:
    """Where a copy of the file goes before it is written over, None where git has it as it is."""
    return None if _is_in_git(path) else path.with_name(path.name + _KEPT)


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` whole or not at all, with the mode of the file as it was, through links.

    Raises:
        OSError: the system does not let it.
    """
    real = path.resolve()
    with tempfile.NamedTemporaryFile(dir=real.parent, prefix=f".{real.name}-", delete=False) as file:
        file.write(content)
    copymode(real, file.name)
    os.replace(file.name, real)


def _is_in_git(path: Path) -> bool:
    """Whether it is committed as it is now."""
    real = path.resolve()
    known = _git(real, "ls-files", "--error-unmatch")
    return known is not None and _git(real, "status", "--porcelain") == ""


def _git(path: Path, *words: str) -> str | None:
    """What git says of the file, None where there is no git, or it does not know the file."""
    command = ["git", "-C", str(path.parent), *words, "--", path.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout
