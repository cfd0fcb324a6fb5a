"""A recording that begins in one function and ends in another, as callbacks need it."""

import sys
from contextlib import ExitStack

from peaksight.live.recorder import Recorder
from peaksight.live.watching import Watching, recording


class Session:
    """At most one recording at a time."""

    def __init__(self, watching: Watching) -> None:
        """Nothing is recorded yet."""
        self._watching = watching
        self._open = ExitStack()
        self._recorder: Recorder | None = None

    def begin(self) -> None:
        """Begin, and end what was left open by a training that failed."""
        self.end()
        self._recorder = self._open.enter_context(recording(self._watching, tuple(sys.argv)))

    def fail(self, error: BaseException) -> None:
        """The training ends with `error`."""
        if self._recorder is not None:
            self._recorder.failed(error)
            self._recorder.end(1)
        self.end()

    def end(self) -> None:
        """The training has ended."""
        self._open.close()
        self._recorder = None
