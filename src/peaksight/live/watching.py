"""Starts the recording of this process, for the command line, for programs and for callbacks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from peaksight.errors import UsageError
from peaksight.extras import is_installed
from peaksight.gpus import Room
from peaksight.live.capsule import keep_capsule
from peaksight.live.disguises import sign_of
from peaksight.live.expectations import Expectations
from peaksight.live.growth import Growth
from peaksight.live.holders import AllocatorHolders
from peaksight.live.host_kills import HostKills
from peaksight.live.out_of_memory import follow_out_of_memory
from peaksight.live.passes_followed import follow_passes
from peaksight.live.predicted import Predicted
from peaksight.live.pressure import Pressure
from peaksight.live.process import this_process
from peaksight.live.recorder import Recorder
from peaksight.live.scalars import Scalars, follow_scalars
from peaksight.live.sinks import Sink
from peaksight.live.sinks.lines import LinesSink
from peaksight.live.sinks.mlflow import MlflowSink
from peaksight.live.sinks.prometheus import PrometheusSink
from peaksight.live.sinks.seldom import Seldom
from peaksight.live.sinks.tensorboard import TensorBoardSink
from peaksight.live.sinks.terminal import TerminalSink
from peaksight.live.sinks.wandb import WandbSink
from peaksight.live.spawned import Watched, follow_spawned
from peaksight.live.statistics import CudaStatistics, Statistics, host_bytes
from peaksight.live.steps import follow_steps
from peaksight.live.swallowed import follow_handled
from peaksight.overlays.patches import Patches
from peaksight.records.capture_file import read_capture_file
from peaksight.records.plan import Expectation
from peaksight.records.watched import WatchedProcess

DEFAULT_DIRECTORY = Path("peaksight-watch")
# What installs a module that something is written with.
_PACKAGES = {
    "tensorboard": "'peaksight[live]'",
    "prometheus_client": "'peaksight[live]'",
    "wandb": "wandb",
    "mlflow": "mlflow",
}

_active: Recorder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What to watch, and where to write it.

    `directory` is None for one of this launch in `DEFAULT_DIRECTORY`. `tensorboard` is a folder, `prometheus` the port
    of local rank 0, `predicted` the capture of `peaksight run --save`. `scalars` are names that the script logs, and
    `expected` is what a plan expects of the run. With `quiet` the terminal gets what went wrong only.
    """

    directory: Path | None = None
    tensorboard: Path | None = None
    wandb: bool = False
    mlflow: bool = False
    prometheus: int | None = None
    predicted: Path | None = None
    scalars: tuple[str, ...] = ()
    expected: Expectation | None = None
    quiet: bool = False

    def check(self) -> None:
        """Check that what is asked for is installed.

        Raises:
            UsageError: it is not.
        """
        wanted = {
            "tensorboard": self.tensorboard is not None,
            "wandb": self.wandb,
            "mlflow": self.mlflow,
            "prometheus_client": self.prometheus is not None,
        }
        for module, is_wanted in wanted.items():
            if is_wanted and not is_installed(module):
                raise UsageError(
                    f"Can't write there: {module.replace('_', '-')} is not installed in {sys.prefix}. Leave the option "
                    f"out, or install it: `pip install {_PACKAGES[module]}`.",
                    slug="watch-not-installed",
                )

    def directory_of(self, process: WatchedProcess) -> Path:
        """Where `process` writes."""
        return self.directory or DEFAULT_DIRECTORY / process.run

    def sinks(self, process: WatchedProcess) -> Iterator[Callable[[], Sink]]:
        """What opens each place to write to."""
        directory = self.directory_of(process)
        yield lambda: TerminalSink(process, quiet=self.quiet)
        yield lambda: LinesSink(directory, process)
        if (folder := self.tensorboard) is not None:
            yield lambda: Seldom(TensorBoardSink(folder, process))
        if self.wandb:
            yield lambda: Seldom(WandbSink(process))
        if self.mlflow:
            yield lambda: Seldom(MlflowSink(process))
        if (port := self.prometheus) is not None:
            yield lambda: Seldom(PrometheusSink(port, process))


def say(message: str) -> None:
    """One line on stderr."""
    with suppress(OSError, ValueError):  # it is closed, and nobody could read it
        print(f"peaksight: {message}", file=sys.stderr, flush=True)


@contextmanager
def recording(
    watching: Watching,
    argv: tuple[str, ...],
    statistics: Statistics | None = None,
    process: WatchedProcess | None = None,
) -> Iterator[Recorder]:
    """Record this process, which runs `argv`, until the context is left, or somebody says how it ended.

    It is `process`, by default the one that the launcher's variables tell of.

    Within another recording it is that one which goes on.

    Raises:
        UsageError: something that is asked for is not installed.
        CaptureFileError: the prediction cannot be read.
    """
    global _active
    if _active is not None and _active.is_on:
        say("this process is watched already: what is watched inside is part of that.")
        yield _active
        return
    watching.check()
    with Patches() as patches:
        recorder = _active = _recorder(watching, process or this_process(argv), statistics or CudaStatistics(), patches)
        try:
            yield recorder
        except SystemExit as stop:
            _leave(recorder, exit_code_of(stop), stop)
            raise
        except BaseException as error:
            recorder.failed(error)
            recorder.end(1)
            raise
        recorder.end(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAsRank:
    """Watches a function in a process that `parent` spawned with others, `world_size` in all; can be pickled."""

    watching: Watching
    parent: WatchedProcess
    world_size: int

    def __call__(self, function: Callable[..., Any], number: int, args: tuple[Any, ...]) -> Any:
        """Run `function` as rank `number`."""
        own = this_process(self.parent.argv)
        process = replace(own, run=self.parent.run, rank=number, local_rank=number, world_size=self.world_size)
        with recording(self.watching, process.argv, process=process):
            return function(number, *args)


def _follow_spawned(patches: Patches, watching: Watching, recorder: Recorder) -> None:
    """Spawned processes are watched in the same directory, and take the place of this one if it has made no step."""
    parent = recorder.process
    same_place = replace(watching, directory=watching.directory_of(parent).resolve())

    def wrap(function: Callable[..., Any], world_size: int) -> Watched:
        return Watched(function=function, watch=WatchAsRank(watching=same_place, parent=parent, world_size=world_size))

    def hand_over() -> None:
        if not recorder.is_on or recorder.num_steps:
            return
        for sink in recorder.sinks:
            sink.close()
            if isinstance(sink, LinesSink):
                sink.path.unlink()
        recorder.stop()

    follow_spawned(patches, wrap, hand_over)


def _leave(recorder: Recorder, exit_code: int, error: BaseException | None) -> None:
    """The script ends itself, with another code than 0 maybe because of `error` or what lies behind it."""
    if exit_code and error is not None and sign_of(error) is not None:
        recorder.failed(error)
    recorder.end(exit_code)


def exit_code_of(stop: SystemExit) -> int:
    """As Python reads it."""
    return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _recorder(watching: Watching, process: WatchedProcess, statistics: Statistics, patches: Patches) -> Recorder:
    predicted = None
    if watching.predicted is not None:
        predicted = Predicted(read_capture_file(watching.predicted, Room)[0], process.rank)
    recorder = Recorder(process, statistics, say=say, host_bytes=host_bytes(), prediction=predicted)
    recorder.watchers += [Growth(AllocatorHolders()), Pressure(), HostKills()]
    if predicted is not None:
        recorder.watchers.append(predicted)
    if watching.expected is not None:
        recorder.watchers.append(expectations := Expectations(watching.expected))
        expectations.listen_to_warnings()
        follow_passes(patches, expectations.backward_begins, expectations.batch_read)
    if watching.scalars:
        recorder.watchers.append(scalars := Scalars(watching.scalars))
        follow_scalars(patches, scalars.logged)
    for open_sink in watching.sinks(process):
        _open(recorder, open_sink)
    follow_steps(patches, recorder.optimizer_stepped, recorder.step)
    follow_out_of_memory(patches, recorder.out_of_memory)
    follow_handled(patches, recorder.handled, partial(_leave, recorder))
    _follow_spawned(patches, watching, recorder)
    keep_capsule(recorder, watching.directory_of(process), patches, say=say)
    return recorder


def _open(recorder: Recorder, open_sink: Callable[[], Sink]) -> None:
    """A sink that cannot be opened is said once, and the training goes on."""
    try:
        recorder.sinks.append(open_sink())
    except Exception as error:
        cause = getattr(error, "strerror", None) or error
        place = getattr(error, "filename", None) or "a record of this run"
        say(f"Can't write {place}: {cause}; the script runs without it.")
