"""Starts the recording of this process, for the command line and for programs."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from peaksight.live.capsule import keep_capsule
from peaksight.live.host_kills import HostKills
from peaksight.live.out_of_memory import follow_out_of_memory
from peaksight.live.process import this_process
from peaksight.live.recorder import Prediction, Recorder, Watcher
from peaksight.live.sinks import Sink
from peaksight.live.sinks.lines import LinesSink
from peaksight.live.sinks.terminal import TerminalSink
from peaksight.live.statistics import CudaStatistics, Statistics, host_bytes
from peaksight.live.steps import follow_steps
from peaksight.overlays.patches import Patches
from peaksight.records.watched import WatchedProcess

DEFAULT_DIRECTORY = Path("peaksight-watch")

OpenSink = Callable[[WatchedProcess], Sink]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What to watch, and where to write it. `directory` is None for one of this launch in `DEFAULT_DIRECTORY`."""

    directory: Path | None = None
    sinks: Sequence[OpenSink] = ()
    watchers: Sequence[Watcher] = ()
    prediction: Prediction | None = None
    statistics: Statistics = field(default_factory=CudaStatistics)


def say(message: str) -> None:
    """One line on stderr."""
    with suppress(OSError, ValueError):  # it is closed, and nobody could read it
        print(f"peaksight: {message}", file=sys.stderr, flush=True)


@contextmanager
def recording(watching: Watching, argv: tuple[str, ...]) -> Iterator[Recorder]:
    """Record this process, which runs `argv`, until the context is left; whoever leaves it says how it ended."""
    process = this_process(argv)
    recorder = Recorder(
        process,
        watching.statistics,
        say=say,
        host_bytes=host_bytes(),
        prediction=watching.prediction,
        watchers=[*watching.watchers, HostKills()],
    )
    directory = watching.directory or DEFAULT_DIRECTORY / process.run
    opens: list[OpenSink] = [TerminalSink, lambda process: LinesSink(directory, process), *watching.sinks]
    for open_sink in opens:
        _open(recorder, open_sink)
    with Patches() as patches:
        follow_steps(patches, recorder.optimizer_stepped, recorder.step)
        follow_out_of_memory(patches, recorder.out_of_memory)
        keep_capsule(recorder, directory, patches, say=say)
        try:
            yield recorder
        finally:
            recorder.end(0)


def _open(recorder: Recorder, open_sink: OpenSink) -> None:
    """A sink that cannot be opened is said once, and the training goes on."""
    try:
        recorder.sinks.append(open_sink(recorder.process))
    except Exception as error:
        cause = getattr(error, "strerror", None) or error
        place = getattr(error, "filename", None) or "a record of this run"
        say(f"Can't write {place}: {cause}; the script runs without it.")
