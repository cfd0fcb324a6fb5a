"""The script's tracebacks as they would be without us."""

import os
import sys
from collections.abc import Iterator
from types import TracebackType

# Where torch goes on in Python for a fake tensor: on the card the operator, and the traceback, end before it.
_FAKE_KERNELS = f"{os.sep}torch{os.sep}_subclasses{os.sep}"
_WAY_THERE = tuple(os.path.join("torch", *path) for path in (("_compile.py",), ("utils", "_stats.py"), ("_ops.py",)))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def print_failure(error: BaseException) -> None:
    """Print `error` through `sys.excepthook`, with the script's frames and those of its libraries only."""
    remove_our_frames(error)
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except Exception as hook_error:
        remove_our_frames(hook_error)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(hook_error), hook_error, hook_error.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)


def remove_our_frames(error: BaseException) -> None:
    """Take the frames of this package out of the traceback of `error`, its causes and contexts, and its group."""
    pending, seen = [error], set()
    while pending:
        error = pending.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = _without_ours(error.__traceback__)
        pending += [linked for linked in (error.__cause__, error.__context__) if linked is not None]
        pending += error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    kept = [entry for entry in _until_fake_kernels(traceback) if not _file(entry).startswith(_PACKAGE)]
    following = None
    for entry in reversed(kept):
        entry.tb_next = following
        following = entry
    return following


def _until_fake_kernels(traceback: TracebackType | None) -> list[TracebackType]:
    entries = list(_entries(traceback))
    for i, entry in enumerate(entries):
        if _FAKE_KERNELS in _file(entry):
            while i and _file(entries[i - 1]).endswith(_WAY_THERE):
                i -= 1
            return entries[:i]
    return entries


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
