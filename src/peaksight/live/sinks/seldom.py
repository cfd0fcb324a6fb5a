"""Between the recorder and a sink that takes its time: of the steps of a second the highest peaks."""

import time
from collections.abc import Callable
from dataclasses import replace

from peaksight.live.sinks import Sink
from peaksight.records.watched import Line, WatchedStep

SECONDS_BETWEEN_STEPS = 1.0


class Seldom:
    """Passes on one step in `seconds` for each card: the last one, with the peaks and counts of all since."""

    def __init__(
        self, sink: Sink, seconds: float = SECONDS_BETWEEN_STEPS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """The first step is passed on at once."""
        self.name = sink.name
        self._sink, self._seconds, self._clock = sink, seconds, clock
        self._waiting: dict[int | None, WatchedStep] = {}
        self._next: dict[int | None, float] = {}

    def write(self, line: Line) -> None:
        """Pass on what is no step, and a step when its time has come."""
        if not isinstance(line, WatchedStep):
            self._sink.write(line)
            return
        waiting = self._waiting.pop(line.device, None)
        step = line if waiting is None else _together(waiting, line)
        now = self._clock()
        if now < self._next.get(line.device, now):
            self._waiting[line.device] = step
            return
        self._next[line.device] = now + self._seconds
        self._sink.write(step)

    def close(self) -> None:
        """Pass on what waits."""
        for step in self._waiting.values():
            self._sink.write(step)
        self._sink.close()


def _together(earlier: WatchedStep, later: WatchedStep) -> WatchedStep:
    return replace(
        later,
        peak_allocated_bytes=max(earlier.peak_allocated_bytes, later.peak_allocated_bytes),
        peak_reserved_bytes=max(earlier.peak_reserved_bytes, later.peak_reserved_bytes),
        retries=earlier.retries + later.retries,
        ooms=earlier.ooms + later.ooms,
        free_bytes=earlier.free_bytes if later.free_bytes is None else later.free_bytes,
        host_bytes=earlier.host_bytes if later.host_bytes is None else later.host_bytes,
    )
