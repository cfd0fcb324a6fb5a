"""The traces that the processes of a launch left, put together by process and by launch."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from peaksight.records.capsule_report import CapsuleReport
from peaksight.records.watched import Watched, WatchedProcess, WatchedStep

OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|ALLOC_FAILED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one process left in one file: its capsule, its record, or the error that torchelastic keeps (`told`)."""

    source: str
    process: WatchedProcess | None = None
    capsule: CapsuleReport | None = None
    watched: Watched | None = None
    rank: int | None = None
    told: str = ""
    time: float | None = None


@dataclass(slots=True)
class RankTraces:
    """All traces of one process."""

    number: int
    traces: list[Trace]

    @property
    def process(self) -> WatchedProcess | None:
        """Who wrote them, None where only an error file is known."""
        return next((trace.process for trace in self.traces if trace.process), None)

    @property
    def host(self) -> str:
        """Where it ran, or empty."""
        return self.process.host if self.process else ""

    @property
    def capsule(self) -> CapsuleReport | None:
        """Its capsule."""
        return next((trace.capsule for trace in self.traces if trace.capsule), None)

    @property
    def watched(self) -> Watched | None:
        """Its record."""
        return next((trace.watched for trace in self.traces if trace.watched), None)

    @property
    def told(self) -> Trace | None:
        """The error that torchelastic keeps of it."""
        return next((trace for trace in self.traces if trace.told), None)

    @property
    def source(self) -> str:
        """The first of its files."""
        return self.traces[0].source

    @property
    def ended_by_memory(self) -> bool:
        """Whether running out of memory ended it, or may have; a capsule may be missing, as on a full disk."""
        if self.capsule is None:
            return bool(OUT_OF_MEMORY.search(self.error))
        return self.capsule.ending is None or self.capsule.ending.is_out_of_memory

    @property
    def failed_at(self) -> float | None:
        """When memory ran out, by its own clock in seconds since 1970; None where nothing tells."""
        if self.capsule is not None:
            return self.capsule.failure.time
        events = self.watched.events if self.watched else ()
        told = [event.time for event in events if event.kind == "out-of-memory"]
        return told[-1] if told else self.told.time if self.told else None

    @property
    def is_told_in_seconds(self) -> bool:
        """Whether that is no more exact than a second, as torchelastic writes it."""
        return self.failed_at is not None and self.failed_at == int(self.failed_at) and self.capsule is None

    @property
    def is_silent(self) -> bool:
        """Whether nothing says how it ended."""
        return self.capsule is None and self.told is None and self.watched is not None and self.watched.end is None

    @property
    def steps(self) -> Sequence[WatchedStep]:
        """The steps that are known of it."""
        if self.watched and self.watched.steps:
            return self.watched.steps
        return self.capsule.steps if self.capsule else ()

    @property
    def error(self) -> str:
        """What ended it, as it says itself."""
        if self.watched and self.watched.end and self.watched.end.error:
            return self.watched.end.error
        return self.told.told if self.told else ""


def runs_of(traces: Iterable[Trace]) -> Iterator[tuple[str, list[RankTraces]]]:
    """The processes of each launch; of two launches of one name the ranks come again."""
    runs: dict[tuple[str, int, int], dict[int, RankTraces]] = {}
    loose = []
    for trace in sorted(traces, key=lambda trace: trace.process.started if trace.process else 0.0):
        if trace.process is None:
            loose.append(trace)
            continue
        process, again = trace.process, 0
        while (rank := runs.get((process.run, process.restart, again), {}).get(process.rank)) is not None and (
            rank.process and (rank.process.host, rank.process.pid) != (process.host, process.pid)
        ):
            again += 1
        ranks = runs.setdefault((process.run, process.restart, again), {})
        ranks.setdefault(process.rank, RankTraces(process.rank, [])).traces.append(trace)
    last = next(reversed(runs.values()), None) if runs else runs.setdefault(("", 0, 0), {})
    for trace in loose:
        if last is not None and trace.rank is not None:
            last.setdefault(trace.rank, RankTraces(trace.rank, [])).traces.append(trace)
    for (name, restart, _), ranks in runs.items():
        if ranks:
            yield f"{name}, restart {restart}" if restart else name, [ranks[number] for number in sorted(ranks)]
