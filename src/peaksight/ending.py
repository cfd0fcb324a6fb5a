"""How our processes end: as Python does, without its look at the million objects that torch leaves behind."""

import atexit
import ctypes
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def end_process(exit_code: int) -> NoReturn:
    """Wait for threads, call what is registered with atexit, flush what was printed, and end at once.

    Python would then free every object, which takes seconds where torch is loaded, and may be aborted by threads of C++
    that need the interpreter meanwhile. A profiler or debugger is left to Python: it tells at the end what it found.
    """
    if sys.getprofile() or sys.gettrace():
        sys.exit(exit_code)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(Exception):
        _flush()
        os._exit(exit_code)
    sys.exit(exit_code)  # Python tells what cannot be written


def _flush() -> None:
    """Python's streams, and those of C: libraries print there."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
