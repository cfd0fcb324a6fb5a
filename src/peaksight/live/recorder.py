"""Follows one real run: a record for each step, an event for what goes wrong, given to every sink.

Nothing here reaches the script: what fails is said once and then left out.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol

from peaksight.live.out_of_memory import Moment
from peaksight.live.sinks import Sink
from peaksight.live.statistics import Figures, Statistics
from peaksight.live.trend import Trend
from peaksight.live.watcher import Watcher
from peaksight.records.watched import Line, WatchedEnd, WatchedEvent, WatchedProcess, WatchedStep

# How far apart in seconds what asks the driver or the system is measured.
_SECONDS_BETWEEN_SAMPLES = 1.0
# After so many steps without a card it is said that there is none.
_STEPS_WITHOUT_CARD = 3
_MAX_ERROR = 300

# Another one in each process that is forked: to ask the system for its number takes longer than to look at this.
_this_process = object()


def _is_forked() -> None:
    global _this_process
    _this_process = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_is_forked)

P = ParamSpec("P")


class Prediction(Protocol):
    """What was predicted for each step."""

    def of(self, step: int, device: int) -> tuple[int, int] | None:
        """The peaks of allocated and of reserved bytes, None where there is no prediction."""
        ...


def _harmless(method: "Callable[Concatenate[Recorder, P], None]") -> "Callable[Concatenate[Recorder, P], None]":
    """`method`, which does nothing in a process that the script forked, and whose failure ends the recording only."""

    @wraps(method)
    def harmless(self: "Recorder", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.is_on:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.stop(f"the recording stops here, the script goes on ({type(error).__name__}: {error})")

    return harmless


class Recorder:
    """Records one process.

    `on_out_of_memory` are called with the recorder and the moment (`live.out_of_memory.Moment`) at which a card was
    full, caught or not, `on_handled` with the recorder and an error that the script catches, `on_failure` with the
    recorder and the error that ends the script.
    """

    def __init__(
        self,
        process: WatchedProcess,
        statistics: Statistics,
        *,
        say: Callable[[str], None],
        host_bytes: Callable[[], int] | None = None,
        prediction: Prediction | None = None,
        watchers: Sequence[Watcher] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Start with step 1, which begins now. `say` tells the person a sentence."""
        self.process = process
        self.sinks: list[Sink] = []
        self.on_out_of_memory: list[Callable[[Recorder, Moment], None]] = []
        self.on_handled: list[Callable[[Recorder, BaseException], None]] = []
        self.on_failure: list[Callable[[Recorder, BaseException], None]] = []
        self.num_steps = 0
        self.last_steps: list[WatchedStep] = []
        self.watchers = list(watchers)
        self._statistics, self._say, self._host_bytes = statistics, say, host_bytes
        self._prediction, self._clock = prediction, clock
        self._process = _this_process
        self._stopped = False
        self._error = ""
        self._began = clock()
        self._next_sample = 0.0
        self._counts: dict[int, tuple[int, int]] = {}
        self._trends: dict[int, Trend] = {}

    @property
    def is_on(self) -> bool:
        """Whether it still records, in the process that it is of."""
        return not self._stopped and self._process is _this_process

    def stop(self, why: str = "") -> None:
        """Record nothing more, and say `why` if it was not the end."""
        self._stopped = True
        if why:
            self._say(why)

    @_harmless
    def optimizer_stepped(self, optimizer: Any) -> None:
        """One of the optimizers has stepped."""
        for watcher in self.watchers:
            watcher.optimizer_stepped(optimizer)

    @_harmless
    def step(self) -> None:
        """A step has ended."""
        self.num_steps += 1
        now = self._clock()
        found = self._statistics.statistics()
        is_sampled = now >= self._next_sample
        if is_sampled:
            self._next_sample = now + _SECONDS_BETWEEN_SAMPLES
        host = self._host_bytes() if self._host_bytes and is_sampled else None
        steps = [self._step_on(figures, now, host, is_sampled) for figures in found] or [self._without_card(now, host)]
        self._began = now
        self.last_steps = steps
        for step in steps:
            self.write(step)
            for watcher in self.watchers:
                for kind, text in watcher.after(step):
                    self.event(kind, text, device=step.device)

    def _without_card(self, now: float, host: int | None) -> WatchedStep:
        if self.num_steps == _STEPS_WITHOUT_CARD:
            self.event(
                "no-card", "no card is in use: this script trains on the CPU, and only steps and host are watched"
            )
        return WatchedStep(step=self.num_steps, time=now, seconds=now - self._began, host_bytes=host)

    def _step_on(self, figures: Figures, now: float, host: int | None, is_sampled: bool) -> WatchedStep:
        device = figures.device
        if device not in self._counts:
            self.write(self._statistics.card(device))
            self._counts[device], self._trends[device] = (0, 0), Trend()
        retries, ooms = self._counts[device]
        retries, ooms = _since(retries, figures.retries), _since(ooms, figures.ooms)
        self._counts[device] = figures.retries, figures.ooms
        free = self._statistics.free_bytes(device) if is_sampled or retries else None
        if free is not None:
            self._trends[device].add(self.num_steps, free)
        predicted = self._prediction.of(self.num_steps, device) if self._prediction else None
        return WatchedStep(
            step=self.num_steps,
            time=now,
            seconds=now - self._began,
            device=device,
            peak_allocated_bytes=figures.peak_allocated_bytes,
            peak_reserved_bytes=figures.peak_reserved_bytes,
            allocated_bytes=figures.allocated_bytes,
            reserved_bytes=figures.reserved_bytes,
            retries=retries,
            ooms=ooms,
            free_bytes=free,
            free_trend=self._trends[device].slope if free is not None else None,
            host_bytes=host,
            predicted_allocated_bytes=predicted[0] if predicted else None,
            predicted_reserved_bytes=predicted[1] if predicted else None,
        )

    @_harmless
    def event(self, kind: str, text: str, *, device: int | None = None) -> None:
        """Something happened in the step that goes on, or in the one that has just ended."""
        for watcher in self.watchers:
            watcher.happened(kind)
        self.write(WatchedEvent(kind=kind, step=self.num_steps, time=self._clock(), text=text, device=device))

    @_harmless
    def out_of_memory(self, moment: Moment) -> None:
        """A card was full, or so the script's error says: called before anything is unwound."""
        for callback in self.on_out_of_memory:
            callback(self, moment)
        self.event("out-of-memory", moment.text, device=moment.device)

    @_harmless
    def handled(self, error: BaseException) -> None:
        """The script handles `error`, or ends the process while it does."""
        for callback in self.on_handled:
            callback(self, error)

    @_harmless
    def failed(self, error: BaseException) -> None:
        """`error` ends the script, and nobody has printed it yet; its traceback still holds the frames."""
        text = next(iter(str(error).splitlines()), "")
        self._error = f"{type(error).__name__}: {text}"[:_MAX_ERROR]
        for callback in self.on_failure:
            callback(self, error)

    @_harmless
    def end(self, exit_code: int) -> None:
        """The script has ended; only the first call counts."""
        for watcher in self.watchers:
            for found in watcher.at_end():
                self.event(*found) if isinstance(found, tuple) else self.write(found)
        self.write(WatchedEnd(step=self.num_steps, time=self._clock(), exit_code=exit_code, error=self._error))
        for sink in list(self.sinks):
            self._try(sink, sink.close)
        self.stop()

    def write(self, line: Line) -> None:
        """Give `line` to every sink."""
        for sink in list(self.sinks):
            self._try(sink, sink.write, line)

    def _try(self, sink: Sink, call: Callable[..., None], *args: Any) -> None:
        """Drop a sink that fails."""
        try:
            call(*args)
        except Exception as error:
            self.sinks.remove(sink)
            cause = getattr(error, "strerror", None) or error
            self._say(f"{sink.name} is no longer written: {cause}; the script goes on, and so does the rest")


def _since(before: int, count: int) -> int:
    """How many were counted since; a script may have had torch count anew."""
    return count - before if count >= before else count
