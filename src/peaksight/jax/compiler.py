"""XLA's compiler in processes of its own: where it crashes, or the host's memory ends, the run goes on without it.

This imports no JAX.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_SERVE = "import sys; sys.path.insert(0, sys.argv[1]); from peaksight.jax.compiler_process import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A `module` of StableHLO as bytecode for `num_devices` of `num_cards` cards, which `target` describes.

    XLA writes what it plans to `folder`; `options` are its debug options by name.
    """

    module: bytes
    target: str
    num_cards: int
    num_devices: int
    folder: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What XLA plans is in the folder of the order; here the sharding of each output if there are several devices.

    Or the first line of the `error`; `is_missing` where there is no compiler, `code` that of the process if it ended.
    """

    shardings: tuple[Any, ...] = ()
    error: str = ""
    is_missing: bool = False
    code: int = 0


class Compiler:
    """Starts the process that compiles when it is first needed, or told to."""

    def __init__(self) -> None:
        """No process yet."""
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def start(self) -> subprocess.Popen[bytes]:
        """The process; it imports JAX while the caller goes on, and hears nothing of Ctrl-C."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVE, str(_ROOT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                cwd=_ROOT,
                start_new_session=True,
            )
        return self._process

    def plan(self, order: Order) -> Answer:
        """What the process answers; with its exit code where it ended instead, and the next one will be another."""
        process = self.start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(order, process.stdin)
            process.stdin.flush()
            answer: Answer = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._process = None
            return Answer(code=process.wait() or 1)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None


def _environment() -> dict[str, str]:
    """That of this process, without what it says of the pool of a card: there is none, and it may be nonsense."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XLA_PYTHON_CLIENT_")}
    return kept | {"JAX_PLATFORMS": "cpu"}


COMPILER = Compiler()


def how_it_ended(code: int) -> str:
    """What an exit code of XLA's compiler says, as part of a sentence."""
    name = f"with {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
    why = ", as where the host has too little memory" if is_of_system(code) else ""
    return f"XLA's compiler ended {name}{why}"


def is_of_system(code: int) -> bool:
    """Whether the system ended it: it would again."""
    return code == -signal.SIGKILL


def first_line(error: Exception) -> str:
    """What `error` says, as part of a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
