"""Lines of the user's code from what JAX notes of an equation."""

import os
import re
import sys
import sysconfig
from functools import cache

from jax.extend.core import ClosedJaxpr, JaxprEqn

_LIBRARIES = tuple({os.path.realpath(sysconfig.get_paths()[key]) for key in ("purelib", "platlib", "stdlib")})
# What JAX says of a function: `step at /home/me/train.py:20`.
_PLACE = re.compile(r" at (.+):(\d+)$")
_PEAKSIGHT = os.path.realpath(os.path.join(os.path.dirname(__file__), os.pardir)) + os.sep


def line_of(eqn: JaxprEqn) -> str:
    """`train.py:20` of the innermost frame outside of libraries, else of the innermost one outside of JAX."""
    traceback = eqn.source_info.traceback
    frames = [] if traceback is None else traceback.frames
    own = next((frame for frame in frames if not is_library(frame.file_name)), None)
    frame = own or next((frame for frame in frames if not is_of_tools(frame.file_name)), None)
    return "" if frame is None else f"{os.path.basename(frame.file_name)}:{frame.line_num}"


def defined_at(closed: ClosedJaxpr) -> str:
    """`train.py:20` of the function that was traced, empty where that is not known."""
    found = _PLACE.search(closed.jaxpr.debug_info.func_src_info or "")
    return f"{os.path.basename(found[1])}:{found[2]}" if found else ""


def own_file_of(eqn: JaxprEqn) -> str:
    """The file of the user's code that the equation comes from, empty where there is none."""
    traceback = eqn.source_info.traceback
    frames = [] if traceback is None else traceback.frames
    return next((frame.file_name for frame in frames if not is_library(frame.file_name)), "")


def is_of_tools(file: str) -> bool:
    """Whether it is a file of JAX or of peaksight, whose lines tell a person nothing."""
    return f"{os.sep}jax{os.sep}" in file or os.path.realpath(file).startswith(_PEAKSIGHT)


@cache
def is_library(file: str) -> bool:
    """Whether it is a file of Python, of an installed package or of peaksight."""
    return file.startswith("<") or os.path.realpath(file).startswith((*_LIBRARIES, _PEAKSIGHT))


def user_line() -> str:
    """`train.py:20` of the user's innermost frame that is running, empty where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file) and f"{os.sep}peaksight{os.sep}" not in file:
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
