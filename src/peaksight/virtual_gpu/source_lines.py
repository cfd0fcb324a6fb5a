"""Which line of the person's own code is running: the innermost one, and the library frame below it."""

import os
import re
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import NamedTuple

from peaksight.records.frames import PLUMBING
from peaksight.virtual_gpu.frames import is_ours

_PYTHON = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
# What the folders of installed packages are called, this environment's, the user's, and those that it builds on.
_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
# A temporary file of the run: code that a library has written, as torch_geometric's templates.
_GENERATED = re.compile(r"[/\\]peaksight-[^/\\]+[/\\]tmp[/\\]")


class Lines(NamedTuple):
    """`source` is the person's innermost line (`train.py:88`), `library` the innermost library frame, or empty.

    `called_backward` tells that `source` is where a backward pass was called, in which no line of the person runs.
    `module` is the path of the module that the line belongs to, where the code that runs was made of several.
    """

    source: str
    library: str
    called_backward: bool = False
    module: str = ""


class _File(NamedTuple):
    is_own: bool
    name: str


@cache
def _place(name: str, line: int) -> str:
    return f"{name}:{line}"


# A run has few of them and very many blocks, each of which keeps its own.
_lines = cache(Lines)


# Of globals without a file, only the code can tell.
_UNNAMED = _File(True, "")


class _Files(dict[str | None, _File | None]):
    """What is known of each file, from the first time that it is asked for; nothing tells of code without one."""

    def __init__(self, classify: Callable[[str], _File | None]) -> None:
        self._classify = classify

    def __missing__(self, filename: str | None) -> _File | None:
        self[filename] = file = _UNNAMED if filename is None else self._classify(filename)
        return file


NOWHERE = Lines("", "")


class SourceLines:
    """Names source lines relative to the script's directory."""

    def __init__(self, script_dir: str) -> None:
        """Files under `script_dir` are named relative to it, other files of the person by their path.

        A `script_dir` among the installed packages makes that package the person's.
        """
        from peaksight.virtual_gpu.torch_private import ENGINE  # the other functions of this module do without torch

        self._engine = ENGINE
        self._script_dir = os.path.abspath(script_dir)
        self._is_installed = installed_name(os.path.join(self._script_dir, "")) is not None
        self._files = _Files(self._classify)
        self.of_program: Callable[[str | None, int], Lines | None] | None = None

    def current(self) -> Lines:
        """The lines that are running; costs a walk up the Python stack."""
        return self._above(sys._getframe(1))

    def callers(self, num_lines: int) -> list[str]:
        """The person's lines that are running, the innermost first and at most `num_lines`."""
        found: list[str] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(found) < num_lines:
            file = self._files[frame.f_code.co_filename]
            if file is not None and file.is_own:
                found.append(_place(file.name, frame.f_lineno))
            frame = frame.f_back
        return found

    def calling_backward(self) -> str:
        """The line that called the backward pass that runs now, the outermost one; empty where none does."""
        engine = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            engine = frame if frame.f_code is self._engine.__code__ else engine
            frame = frame.f_back
        return self._above(engine).source

    def _above(self, frame: FrameType | None) -> Lines:
        """The lines of `frame` and its callers.

        Each look at `f_code` calls the audit hook, so that it is taken only where the file of the globals matters.
        """
        library, in_backward, module, files = "", False, "", self._files
        engine, of_program = self._engine, self.of_program
        engine_names = engine.__globals__
        while frame is not None:
            names = frame.f_globals
            if names is engine_names and frame.f_code is engine.__code__:
                in_backward = True
            file = files[names.get("__file__")]
            if of_program is not None:
                lines = of_program(names.get("__file__"), frame.f_lineno)
                if lines is not None and lines.source:
                    return lines
                if lines is not None:
                    library, module, file = lines.library, lines.module, None
            if file is not None and (file.is_own or not library):
                file = files[frame.f_code.co_filename]
                if file is not None and file.is_own:
                    return _lines(_place(file.name, frame.f_lineno), library, in_backward, module)
                if file is not None:
                    library = library or _place(file.name, frame.f_lineno)
            frame = frame.f_back
        return _lines("", library, in_backward, module)

    def is_own(self, filename: str) -> bool:
        """Whether `filename` is the person's."""
        file = self._files[filename]
        return file is not None and file.is_own

    def name_of(self, filename: str) -> str:
        """What the report calls `filename`."""
        file = self._files[filename]
        return file.name if file is not None else filename

    def _classify(self, filename: str) -> _File | None:
        """None for frames of peaksight, of plumbing and without a file."""
        if is_own(filename) or (self._is_installed and filename.startswith(self._script_dir + os.sep)):
            return _File(True, _relative(filename, self._script_dir))
        name = installed_name(filename)
        return None if name is None or name.startswith(PLUMBING) else _File(False, name)


@cache
def is_own(filename: str) -> bool:
    """Whether `filename` is the person's: no library's, not ours, and a file that was there before the run."""
    is_file = not filename.startswith("<") and _GENERATED.search(filename) is None
    return is_file and not is_ours(filename) and installed_name(filename) is None


@cache
def installed_name(filename: str) -> str | None:
    """The name of a library's file below its packages (`torch/nn/functional.py`), None for other files and ours."""
    if is_ours(filename):
        return None
    if packages := _PACKAGES.search(filename):
        return filename[packages.end() :]
    return next((filename[len(root) + 1 :] for root in _PYTHON if filename.startswith(root + os.sep)), None)


def _relative(filename: str, script_dir: str) -> str:
    path = os.path.abspath(filename)
    return os.path.relpath(path, script_dir) if path.startswith(script_dir + os.sep) else path
