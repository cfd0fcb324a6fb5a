"""Threads of the script: torch's modes are a thread's own, so each gets those of the run, and uses them in its turn."""

import threading
from typing import Any

from peaksight.errors import StopSimulation
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.tracebacks import remove_our_frames
from peaksight.virtual_gpu.torch_private import modes_in_thread

# Held by the thread whose operator is simulated: modes, ledger and allocator know one at a time.
TURN = threading.RLock()


def install(patches: Patches, mode: Any, requests: Any) -> None:
    """Let threads that start until `patches` is left have the card: the dispatch mode and the function mode of it."""
    start = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
    report = threading.excepthook

    def start_on_card(thread: threading.Thread) -> None:
        with modes_in_thread(mode, requests):
            start(thread)

    def report_as_there(failure: Any) -> None:
        if not isinstance(failure.exc_value, StopSimulation):  # a thread that trained has shown enough
            remove_our_frames(failure.exc_value)
            traceback = failure.exc_value.__traceback__
            report(threading.ExceptHookArgs((failure.exc_type, failure.exc_value, traceback, failure.thread)))

    patches.set(threading.Thread, "_bootstrap_inner", start_on_card)
    patches.set(threading, "excepthook", report_as_there)
