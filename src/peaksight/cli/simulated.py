"""The simulations that a run consists of: of one rank or of several, and again without a limit where one fails."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from peaksight.attribution import peak_alike
from peaksight.errors import ScriptError, UsageError
from peaksight.gpus import Room
from peaksight.records import WITHOUT_ANSWER, Capture, ScriptCommand, StepPeak

ALL = "all"

Captures = tuple[Capture, ...]
Simulate = Callable[..., Captures | None]


class Progress(Protocol):
    """Says how far a run is."""

    def again(self, room: Room) -> None:
        """The run starts again."""

    def another(self, rank: int, world_size: int) -> None:
        """The run of another rank starts."""

    def __call__(self, step: StepPeak) -> None:
        """A step has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulations:
    """How `command` is simulated: `here` in this process, `elsewhere` in one of its own, both with the options `how`.

    `ranks` are those that were asked for, `all`, or None.
    """

    command: ScriptCommand
    room: Room
    ranks: str | None
    here: Simulate
    elsewhere: Simulate
    how: dict[str, Any]
    progress: Progress

    def captures(self) -> Captures:
        """Those of each rank in order, then those of the ranks that were run again without a limit.

        The first rank is simulated in any case: others read and receive what it writes and sends.

        Raises:
            UsageError: a rank does not exist.
            ScriptError: a rank ended without an answer.
        """
        asked = _asked_for(self.ranks)
        for rank in asked[:1]:
            _demand(rank, self.command.processes if self.command.processes > 1 else None)
        first = self.here(self.command, self.room, rank=0, on_step=self.progress, **self.how)
        assert first is not None
        if not _has_answer(first) or first[0].rank:
            return first
        runs = {} if asked and asked[0] else {0: first}
        unlimited = {rank: self._without_limit(rank, run) for rank, run in runs.items()}
        for rank in self._others(asked, first, runs):
            self.progress.another(rank, first[0].world_size)
            runs[rank] = self._elsewhere(rank)
            unlimited[rank] = self._without_limit(rank, runs[rank])
            if runs[rank] and not _has_answer(runs[rank]):
                break  # the launcher ends the others then
        return tuple(capture for each in (runs, unlimited) for _, run in sorted(each.items()) for capture in run)

    def _others(self, asked: Sequence[int], first: Captures, runs: dict[int, Captures]) -> Iterator[int]:
        """The ranks asked for; by default the last, and the second where the last peaks otherwise than the first."""
        size = first[0].world_size
        if self.ranks == ALL:
            yield from range(1, size)
        elif asked:
            for rank in filter(None, asked):
                _demand(rank, size)
                yield rank
        elif size > 1:
            yield size - 1
            if size > 2 and not peak_alike(first, runs[size - 1]):
                yield 1

    def _elsewhere(self, rank: int) -> Captures:
        run = self.elsewhere(self.command, self.room, rank=rank, on_step=self.progress, **self.how)
        if run is None:
            raise ScriptError(
                f"No answer: the simulation of rank {rank} ended without one; what it said last is above. "
                "Look at the others with --rank.",
                slug="rank-failed",
            )
        return run if run[0].rank == rank else ()

    def _without_limit(self, rank: int, captures: Captures) -> Captures:
        """The same run on cards without a limit, if a failure ended it and that tells more."""
        fatal = [capture.failures[capture.fatal] for capture in captures if capture.fatal is not None]
        if not fatal:
            return ()
        self.progress.again(self.room)
        how = self.how | {"rank": rank, "max_failures": fatal[0].number}
        unlimited = self.elsewhere(self.command, self.room, on_step=self.progress, **how)
        return unlimited if unlimited and _tells_more(unlimited, captures) else ()


def _asked_for(ranks: str | None) -> list[int]:
    """The numbers in `0,3`, each once and in order."""
    if ranks is None or ranks == ALL:
        return []
    return sorted({int(rank) for rank in ranks.split(",")})


def _demand(rank: int, size: int | None) -> None:
    if size is not None and rank >= size:
        raise UsageError(
            f"There is no rank {rank}: the script runs as {size}, numbered from 0. Name one of them with --rank.",
            slug="no-such-rank",
        )


def _has_answer(captures: Captures) -> bool:
    """Whether a run went on to where it says something: its failure to fit is an answer too."""
    return captures[0].finished not in WITHOUT_ANSWER or any(capture.fatal is not None for capture in captures)


def _tells_more(unlimited: Captures, captures: Captures) -> bool:
    """Whether the run without a limit got beyond where the first one ended: it has no stdin, and Ctrl-C may end it."""
    reserved_bytes = [sum(capture.peak_reserved_bytes for capture in run) for run in (captures, unlimited)]
    return unlimited[0].finished not in WITHOUT_ANSWER or reserved_bytes[1] > reserved_bytes[0]
