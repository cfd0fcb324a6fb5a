"""A second simulation of the same command, in a fresh Python process, for the first has changed this one.

`python -m peaksight.virtual_gpu.elsewhere` reads its arguments from stdin and writes what happens to stdout, pickled.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from peaksight.gpus import Room
from peaksight.records import Capture, ScriptCommand, StepPeak


def simulate_elsewhere(
    command: ScriptCommand, room: Room, *, on_step: Callable[[StepPeak], None] | None = None, **options: Any
) -> Capture | None:
    """As `simulate`, in a process of its own where the script reads nothing from stdin and its prints go nowhere.

    Returns None where the process ended without a capture.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process, _interrupts_left_to_it():
        assert process.stdin is not None and process.stdout is not None
        pickle.dump((command, room, options), process.stdin)
        process.stdin.close()
        return _follow(process.stdout, on_step)


def _follow(messages: IO[bytes], on_step: Callable[[StepPeak], None] | None) -> Capture | None:
    """Tell `on_step` of each step, and return the capture at the end."""
    while True:
        try:
            message = pickle.load(messages)
        except EOFError:
            return None
        if isinstance(message, Capture):
            return message
        if on_step is not None:
            on_step(message)


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    """Ctrl-C reaches the other process too, which then answers with what it has."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _main() -> None:
    """The other process: simulate what stdin asks for."""
    from peaksight.virtual_gpu.simulation import simulate

    command, room, options = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as messages:
        _close_streams()

        def send(message: StepPeak | Capture) -> None:
            pickle.dump(message, messages)
            messages.flush()

        send(simulate(command, room, on_step=send, **options))


def _close_streams() -> None:
    """Leave the script nothing to read, and let its prints go nowhere, those of its subprocesses too."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nowhere, stream)


if __name__ == "__main__":
    _main()
