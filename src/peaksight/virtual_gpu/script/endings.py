"""What ends a process from the inside ends the script, not the process that is to report on it.

A process that the script forked does end.
"""

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.native_exit import answer_native_exit

# What a shell adds to the number of the signal that ended a program.
KILLED = 128
_TIMERS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)
_KEPT = (signal.SIGINT, signal.SIGTERM, *_TIMERS)
# Signals that by default do not end a process.
_HARMLESS = {
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGURG,
    signal.SIGWINCH,
}


class Endings:
    """Keeps the process alive until `patches` is left; `was_interrupted` tells of a Ctrl-C that the script caught."""

    def __init__(self, patches: Patches) -> None:
        """Have `os._exit`, `os.abort`, signals to itself and timers raise SystemExit in the script."""
        self.was_interrupted = False
        self._process = os.getpid()
        self._patches = patches
        self._exit = self._replace("_exit", lambda status: SystemExit(status))
        self._replace("abort", lambda: SystemExit(KILLED + signal.SIGABRT))
        self._replace_kill()
        self._disarm_faulthandler()
        answer_native_exit(patches)
        if threading.current_thread() is threading.main_thread():
            self._handle_signals()

    def _replace(self, name: str, ending: Callable[..., SystemExit]) -> Any:
        def leave(*args: Any) -> Any:
            if os.getpid() == self._process:
                raise ending(*args)
            return real(*args)

        real = self._patches.set(os, name, leave)
        return real

    def _replace_kill(self) -> None:
        def kill(pid: int, number: int) -> None:
            if pid == self._process == os.getpid() and _ends(number):
                raise SystemExit(KILLED + number)
            real_kill(pid, number)

        def raise_signal(number: int) -> None:
            kill(os.getpid(), number) if _ends(number) else real_raise(number)

        real_kill = self._patches.set(os, "kill", kill)
        real_raise = self._patches.set(signal, "raise_signal", raise_signal)

    def _disarm_faulthandler(self) -> None:
        """Its watchdog may print where the script is, but not end the process: a simulation has another clock."""

        def dump_later(timeout: float, repeat: bool = False, file: Any = None, exit: bool = False) -> None:
            real(timeout, repeat=repeat, file=file or sys.stderr)

        real = self._patches.set(faulthandler, "dump_traceback_later", dump_later)
        self._patches.callback(faulthandler.cancel_dump_traceback_later)

    def _handle_signals(self) -> None:
        for number in _KEPT:
            self._patches.callback(signal.signal, number, signal.getsignal(number) or signal.SIG_DFL)
        self._patches.callback(_stop_timers)
        for number in _TIMERS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._on_timer)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_interrupt)

    def _on_timer(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == self._process:
            raise SystemExit(KILLED + number)
        self._exit(KILLED + number)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.was_interrupted = True
        signal.default_int_handler(number, frame)


def _ends(number: int) -> bool:
    """Whether signal `number` would end this process."""
    is_default = number == signal.SIGKILL or (number and signal.getsignal(number) is signal.SIG_DFL)
    return bool(is_default) and number not in _HARMLESS


def _stop_timers() -> None:
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)
