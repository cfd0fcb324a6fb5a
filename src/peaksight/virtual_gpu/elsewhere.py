"""A second simulation of the same command, in a fresh Python process, for the first has changed this one.

The process reads its arguments from stdin and writes what happens to stdout, pickled.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

from peaksight.ending import end_process
from peaksight.errors import PeaksightError
from peaksight.extras import check_torch
from peaksight.gpus import Room
from peaksight.records import Capture, ScriptCommand, StepPeak
from peaksight.virtual_gpu.garbage import collect_rarely


def simulate_elsewhere(
    command: ScriptCommand, room: Room, *, on_step: Callable[[StepPeak], None] | None = None, **options: Any
) -> tuple[Capture, ...] | None:
    """As `simulate`, in a process of its own where the script reads nothing from stdin and its prints go nowhere.

    What it says on stderr is passed on if the script fails there. Returns None where the process ended without
    captures.

    Raises:
        PeaksightError: as `simulate` does, or torch is not installed.
    """
    check_torch()
    with TemporaryFile() as errors:
        process = subprocess.Popen(_python_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        with process, _interrupts_left_to_it():
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError), process.stdin as arguments:
                pickle.dump((command, room, options), arguments)
            captures = _follow(process.stdout, on_step)
        if captures is None or captures[0].finished == "failed":
            errors.seek(0)
            sys.stderr.write(errors.read().decode(errors="replace"))
        return captures


def _python_command() -> list[str]:
    """Python with the flags and the search path of this process: `-m` would look in the working directory first."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import answer; answer()"
    return [sys.executable, *flags, "-c", code]


def _follow(messages: IO[bytes], on_step: Callable[[StepPeak], None] | None) -> tuple[Capture, ...] | None:
    """Tell `on_step` of each step, and return the captures at the end."""
    while True:
        try:
            message = pickle.load(messages)
        except (EOFError, pickle.UnpicklingError):
            return None
        if isinstance(message, tuple):
            return message
        if isinstance(message, PeaksightError):
            raise message
        if on_step is not None:
            on_step(message)


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Ctrl-C reaches the other process too, which then answers with what it has."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts reach the main thread only
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def answer() -> NoReturn:
    """In the other process: simulate what stdin asks for, and end."""
    collect_rarely()
    from peaksight.virtual_gpu.simulation import simulate

    command, room, options = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as messages:
        _close_streams()

        def send(message: StepPeak | tuple[Capture, ...] | PeaksightError) -> None:
            pickle.dump(message, messages)
            messages.flush()

        try:
            send(simulate(command, room, on_step=send, **options))
        except PeaksightError as error:
            send(error)
    end_process(0)


def _close_streams() -> None:
    """Leave the script nothing to read, and let its prints go nowhere, those of its subprocesses too."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)
