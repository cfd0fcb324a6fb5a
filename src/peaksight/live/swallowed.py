"""Sees an error that the script catches: in what handlers of it usually call, and where they end the process."""

import gc
import logging
import os
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

# What a handler calls, in which the error is still the one that is handled.
_CALLED = (
    (gc, "collect"),
    (traceback, "format_exc"),
    (traceback, "print_exc"),
    (logging.Logger, "handle"),
)


OnExit = Callable[[int, BaseException | None], None]


def follow_handled(patches: Patches, on_error: Callable[[BaseException], None], on_exit: OnExit) -> None:
    """Call `on_error` with the error in whose handler the script empties a cache, logs or prints a traceback.

    `on_exit` gets the code of an `os._exit`, after which nothing else is called, and the error that is handled there.
    Until `patches` is left.

    Limitations:
        A handler that calls none of these, and goes on, is not seen.
    """

    def looking(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            error = sys.exc_info()[1]
            if error is not None:
                on_error(error)
            return function(*args, **kwargs)

        return called

    def exiting(status: int) -> Any:
        on_exit(status, sys.exc_info()[1])
        return leave(status)

    for owner, name in _CALLED:
        patches.set(owner, name, looking(getattr(owner, name)))
    leave = os._exit
    patches.set(os, "_exit", wraps(leave)(exiting))

    def empties(module: ModuleType) -> None:
        empty_cache = looking(module.cuda.empty_cache)
        for owner in (module.cuda, module.cuda.memory):
            patches.set(owner, "empty_cache", empty_cache)

    change_modules(patches, {"torch": empties})
