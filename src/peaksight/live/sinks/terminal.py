"""The terminal: what went wrong from every rank, the steps from rank 0; a line that stays in place where it is one."""

import sys
import time
from collections.abc import Callable
from typing import Any

from peaksight.live.sinks.in_place import InPlace, wrapped
from peaksight.records.watched import ExpectationCheck, Line, WatchedEvent, WatchedProcess, WatchedStep
from peaksight.units import format_bytes, format_difference

# In a log: the first steps, and then one a minute.
_FIRST_STEPS = (1, 2)
_SECONDS_BETWEEN_LINES = 60.0
_SECONDS_BETWEEN_DRAWINGS = 0.2


class TerminalSink:
    """Says steps and events on stderr."""

    name = "The terminal"

    def __init__(
        self, process: WatchedProcess, clock: Callable[[], float] = time.monotonic, *, quiet: bool = False
    ) -> None:
        """Speak for `process`: with `quiet` of what went wrong only."""
        self._rank = process.rank if process.world_size > 1 else None
        self._clock, self._stream = clock, sys.stderr
        self._in_place = InPlace.on_terminal() if process.rank == 0 and not quiet else None
        self._shows_steps = process.rank == 0 and not quiet
        self._free: tuple[int, float | None] | None = None
        self._next = 0.0

    def write(self, line: Line) -> None:
        """Say `line` if it is one for people, and its time has come."""
        if isinstance(line, WatchedStep):
            self._free = self._free if line.free_bytes is None else (line.free_bytes, line.free_trend)
            if self._shows_steps:
                self._step(line)
        elif isinstance(line, WatchedEvent):
            self._say(f"step {line.step}: {line.text}" if line.step else line.text)
        elif isinstance(line, ExpectationCheck):
            self._say(f"{_VERDICTS[line.holds]}: {line.name}: expected {line.expected}, measured {line.measured}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._in_place:
            self._in_place.close()

    def _step(self, step: WatchedStep) -> None:
        now = self._clock()
        if self._in_place:
            if now >= self._next:
                self._next = now + _SECONDS_BETWEEN_DRAWINGS
                self._in_place.draw(step_line(step, self._free))
        elif step.step in _FIRST_STEPS or now >= self._next:
            self._next = now + _SECONDS_BETWEEN_LINES
            self._say(step_line(step, self._free))

    def _say(self, text: str) -> None:
        if self._in_place:
            self._in_place.erase()
        rank = "" if self._rank is None else f" [rank {self._rank}]"
        print(wrapped(f"peaksight{rank}: {text}", self._stream), file=self._stream, flush=True)


_VERDICTS: dict[Any, str] = {True: "as planned", False: "not as planned", None: "not seen"}


def step_line(step: WatchedStep, free: tuple[int, float | None] | None) -> str:
    """A step in one line, with what was `free` of the card last and how that changes per step."""
    if step.device is None:
        return f"step {step.step} in {step.seconds:.2f} s, no card in use"
    parts = [
        f"step {step.step} in {step.seconds:.2f} s: peak {format_bytes(step.peak_allocated_bytes)} allocated",
        f"{format_bytes(step.peak_reserved_bytes)} reserved",
    ]
    if step.predicted_allocated_bytes is not None:
        parts[0] += f" ({format_bytes(step.predicted_allocated_bytes)} predicted)"
    if step.retries:
        parts.append(f"{step.retries} {'retry' if step.retries == 1 else 'retries'}")
    if free is not None:
        trend = f" ({format_difference(round(free[1]))} a step)" if free[1] and abs(free[1]) >= 1 else ""
        parts.append(f"{format_bytes(free[0])} free{trend}")
    return ", ".join(parts)
