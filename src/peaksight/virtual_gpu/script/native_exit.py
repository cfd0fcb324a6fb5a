"""`exit()` of C, called by libraries that find no card: its code 1 would say that the job does not fit."""

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.explanations import explain_exit
from peaksight.virtual_gpu.script.session import activate, active

NO_ANSWER = 2
_exit = os._exit
# What C calls must stay.
_kept: list[Any] = []


def answer_native_exit(patches: Patches) -> None:
    """Have `exit()`, called in this process before `patches` is left, say so and end with code 2.

    A handler of the Itanium C++ ABI, as destructors of static objects are: it can be taken back.
    """
    libc: Any = ctypes.CDLL(None)
    if not (hasattr(libc, "__cxa_atexit") and hasattr(libc, "__cxa_finalize")):
        return
    process, is_over = os.getpid(), [False]

    def end(argument: Any) -> None:
        if not is_over[0] and os.getpid() == process:
            _end(sys._getframe().f_back)

    at_exit = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(end)
    owner = ctypes.create_string_buffer(1)
    libc.__cxa_atexit(at_exit, None, owner)
    _kept.append(at_exit)

    def take_back() -> None:
        is_over[0] = True
        libc.__cxa_finalize(owner)

    patches.callback(take_back)


def _end(frame: FrameType | None) -> None:
    try:
        sys.stdout.flush()
        error = explain_exit(list(_files(frame)))
        print(f"peaksight: {error} See docs/messages.md#{error.slug}.", file=sys.stderr, flush=True)
        overlay = active()
        activate(None)
        if overlay is not None:
            shutil.rmtree(overlay.root, ignore_errors=True)
    finally:
        _exit(NO_ANSWER)


def _files(frame: FrameType | None) -> Iterator[str]:
    """Innermost first."""
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back
