"""Weights & Biases: beside what the script logs in its own run, else in a run of its own."""

import contextlib
from typing import Any

from peaksight.live.sinks import figures_of, tag_of
from peaksight.records.watched import Line, WatchedEvent, WatchedProcess, WatchedStep

_PROJECT = "peaksight-watch"


class WandbSink:
    """Logs to the active run without ending its step: figures go with what the script logs next."""

    name = "Weights & Biases"

    def __init__(self, process: WatchedProcess) -> None:
        """Nothing is imported, and no run begun, before the first step ends."""
        self._process = process
        self._own: Any = None

    def write(self, line: Line) -> None:
        """Log `line` if it is a step; an event is an alert."""
        if isinstance(line, WatchedStep):
            values: dict[str, Any] = {tag_of(name, line.device): value for name, value in figures_of(line).items()}
            values["peaksight/step"] = line.step
            run = self._run()
            run.log(values, commit=run is self._own)
        elif isinstance(line, WatchedEvent) and line.step:
            with contextlib.suppress(Exception):  # a server may not take alerts
                self._run().alert(title=f"peaksight: {line.kind}", text=line.text)

    def close(self) -> None:
        """End the run if it is ours."""
        if self._own is not None:
            self._own.finish(quiet=True)

    def _run(self) -> Any:
        """The script's run as soon as there is one."""
        import wandb

        if wandb.run is not None:
            return wandb.run
        if self._own is None:
            self._own = wandb.init(
                project=_PROJECT,
                group=self._process.run,
                name=f"rank{self._process.rank}",
                reinit="create_new",  # the script's own one is not to be this one
                settings=wandb.Settings(quiet=True, console="off"),
            )
        return self._own
