"""Weights & Biases: beside what the script logs in its own run, else in a run of its own."""

import contextlib
import sys
from collections import deque
from typing import Any

from peaksight.live.sinks import figures_of, tag_of
from peaksight.records.watched import Line, WatchedEvent, WatchedProcess, WatchedStep

_PROJECT = "peaksight-watch"


# What is kept until a script that imports wandb has begun its run.
_MAX_WAITING = 10_000


class WandbSink:
    """Logs to the active run without ending its step: figures go with what the script logs next.

    A run of our own would be handed to a script that calls `wandb.init()` after it. So there is one only for a script
    that has not imported wandb when its first step ends; for another one that never begins a run it is made at the end.
    """

    name = "Weights & Biases"

    def __init__(self, process: WatchedProcess) -> None:
        """Nothing is imported, and no run begun, before the first step ends."""
        self._process = process
        self._own: Any = None
        self._script_may_begin: bool | None = None
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_MAX_WAITING)

    def write(self, line: Line) -> None:
        """Log `line` if it is a step; an event is an alert."""
        if isinstance(line, WatchedStep):
            if self._script_may_begin is None:
                self._script_may_begin = "wandb" in sys.modules
            values: dict[str, Any] = {tag_of(name, line.device): value for name, value in figures_of(line).items()}
            self._waiting.append(values | {"peaksight/step": line.step})
            self._log()
        elif isinstance(line, WatchedEvent) and line.step and (run := self._run()) is not None:
            with contextlib.suppress(Exception):  # a server may not take alerts
                run.alert(title=f"peaksight: {line.kind}", text=line.text)

    def close(self) -> None:
        """Log what waits, and end the run if it is ours."""
        self._script_may_begin = False
        if self._waiting:
            self._log()
        if self._own is not None:
            self._own.finish()

    def _log(self) -> None:
        run = self._run()
        while run is not None and self._waiting:
            run.log(self._waiting.popleft(), commit=run is self._own)

    def _run(self) -> Any:
        """The script's run as soon as there is one; None as long as it may begin one."""
        import wandb

        if wandb.run is not None:
            return wandb.run
        if self._own is None and not self._script_may_begin:
            self._own = wandb.init(
                project=_PROJECT,
                group=self._process.run,
                name=f"rank{self._process.rank}",
                reinit="create_new",  # it is not the active one
                settings=wandb.Settings(quiet=True, console="off"),
            )
        return self._own
