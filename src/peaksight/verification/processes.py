"""Starts the process of a recorded run, and ends it where it does not end by itself."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# How long one run may take, in seconds.
TIMEOUT = 3600.0
# torchrun gives its ranks 30 seconds to end before it kills them.
_GRACE = 60.0


def start_process(words: Sequence[str], environment: Mapping[str, str], log: Path, *, timeout: float = TIMEOUT) -> int:
    """Run `words`, write what they print to `log`, and return the exit code.

    Raises:
        subprocess.TimeoutExpired: after `timeout` seconds; the process and what it started have been ended.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
        try:
            return process.wait(timeout)
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process first: the ranks of torchrun are in sessions of their own, and only it can end them."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
