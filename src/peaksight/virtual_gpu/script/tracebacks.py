"""The script's tracebacks as they would be without us."""

import sys
from collections.abc import Iterator
from types import TracebackType

from peaksight.virtual_gpu.frames import visible


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
    entries = list(_entries(traceback))
    following = None
    for position in reversed(visible([entry.tb_frame.f_code for entry in entries])):
        entries[position].tb_next = following
        following = entries[position]
    return following


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
