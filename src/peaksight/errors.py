"""Everything peaksight raises on purpose: one base class, one line a subclass.

Each message states fact, cause and way out in one sentence. `slug` names its paragraph in docs/messages.md.
"""

from functools import partial
from typing import Any


class PeaksightError(Exception):
    """The base of every error that `cli.main` turns into one line on stderr and exit code 2."""

    def __init__(self, message: str, *, slug: str) -> None:
        """Keep the sentence for the person and the `slug` of its paragraph in docs/messages.md."""
        super().__init__(message)
        self.slug = slug

    def __reduce__(self) -> tuple[Any, ...]:
        """For the way from one process to another."""
        return partial(type(self), slug=self.slug), self.args


class UsageError(PeaksightError):
    """The command line asks for something that does not exist."""


class ScriptError(PeaksightError):
    """The script cannot be started, or ended in a way that leaves no answer."""


class UnsupportedError(PeaksightError):
    """The script needs something that the virtual GPU does not simulate."""


class VerificationError(PeaksightError):
    """Runs from which no certificate can be made."""


class PlanError(PeaksightError):
    """A plan that cannot be read or applied, or that does not belong to the run."""


class CaptureFileError(PeaksightError):
    """A capture or trace file cannot be read."""


class SnapshotError(PeaksightError):
    """A memory snapshot cannot be read, or holds what no snapshot does."""


class AllocatorSettingsError(PeaksightError):
    """A setting of the caching allocator that is unknown or not simulated."""


class StopSimulation(BaseException):
    """No error: raised inside the script when enough was seen; its `finally` blocks and context managers run.

    It is no `Exception`, so that `except Exception` in a script does not swallow it. `reason` is the capture's
    `finished`: `steady`, `steps`, `unsteady` or `failed`.
    """

    def __init__(self, reason: str) -> None:
        """Keep the `reason`."""
        super().__init__(reason)
        self.reason = reason
