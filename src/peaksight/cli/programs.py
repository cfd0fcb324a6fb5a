"""Finds what a word names that is no launcher: a script's file, or a Python program on PATH (a console script)."""

import os
import re
import shutil
import sys

from peaksight.errors import UnsupportedError

# The first two lines of a Python program: pip writes the interpreter on the second where its path is long.
_PYTHON_PROGRAM = re.compile(rb"#!.*(python|pypy|uv run)|#!/bin/sh\r?\n'''exec' .*python")


def find_program(word: str) -> str:
    """The path of the script or program that `word` names, `word` itself where there is none.

    UnsupportedError when it is another program than a Python one, such as a shell or a shell script.
    """
    path = word if os.path.exists(word) else _on_path(word) or word
    if os.path.isfile(path) and not _is_python(path):
        raise UnsupportedError(
            f"Can't simulate {word!r}: it is not a Python program. "
            "Give what it starts in the end, as in `peaksight run train.py ARGS`.",
            slug="other-program",
        )
    return path


def _on_path(word: str) -> str | None:
    """What a shell would find, programs of this environment first."""
    if os.path.dirname(word):
        return None
    return shutil.which(word, path=os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", ""))))


def _is_python(path: str) -> bool:
    """Whether the name or the first line says so; text without a first line of that kind is taken for Python."""
    if path.endswith((".py", ".pyw")):
        return True
    with open(path, "rb") as file:
        head = file.read(1024)
    return _PYTHON_PROGRAM.match(head) is not None if head.startswith(b"#!") else b"\0" not in head
