"""Files that people give for a script and that are none: notebooks, shell scripts, settings, binaries."""

import os
import re
import zipfile

_ENOUGH_BYTES = 1 << 16
_SHELL = re.compile(rb"#!.*\b(ba|z|k|c|tc|fi|da)?sh\b")
_SHELL_SUFFIXES = {".sh", ".bash", ".zsh", ".csh", ".slurm", ".sbatch"}
# Some of them would pass for Python.
_OTHER_SUFFIXES = {".json", ".jsonl", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".txt", ".md", ".csv", ".pt", ".pth"}


def is_archive(path: str) -> bool:
    """Whether Python would look for a `__main__.py` in it, as in a directory."""
    return os.path.isfile(path) and zipfile.is_zipfile(path)


def why_not_python(path: str) -> str | None:
    """What is wrong with the file at `path`, with the way out, as the rest of a sentence; None for Python source."""
    with open(path, "rb") as file:
        start = file.read(_ENOUGH_BYTES)
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".ipynb":
        return f"it is a notebook. Make a script of it with `jupyter nbconvert --to script {path}`."
    if suffix in _SHELL_SUFFIXES or _SHELL.match(start):
        return "it is a shell script. Give the command in it that starts Python."
    if suffix in _OTHER_SUFFIXES:
        return f"it is a {suffix} file. Give the path of a Python script."
    if b"\0" in start:
        return "it is a binary file. Give the path of a Python script."
    return None
