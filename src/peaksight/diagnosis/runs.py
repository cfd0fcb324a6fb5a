"""What the processes of one run left behind: which rank failed first, and what became of the others."""

import math
import re
from collections.abc import Iterable, Mapping
from statistics import median

from peaksight.diagnosis.run_traces import RankTraces, Trace, runs_of
from peaksight.records import RankEnd, ToldBy
from peaksight.records.capsule_report import RunReading

RUN_SCHEMA = "peaksight.run-reading/1"
# How far clocks that NTP keeps may be apart, where no steps of several hosts tell it.
_USUAL_CLOCKS_SECONDS = 1.0
_SECOND = 1.0
_MISSED = re.compile(
    r"DistBackendError|NCCL|[Ww]atchdog|collective operation timeout|[Tt]imed out|Connection (?:reset|closed)|"
    r"Broken pipe|Socket Timeout|remote process|heartbeat",
)


def explain_runs(traces: Iterable[Trace], named_rank: int | None = None) -> list[RunReading]:
    """One answer for each launch that has more than one process or file, the earliest first.

    `named_rank` is the one that a launcher's log names.
    """
    return [_explain(name, ranks, named_rank) for name, ranks in runs_of(traces)]


def _explain(name: str, ranks: list[RankTraces], named_rank: int | None) -> RunReading:
    clocks = _Clocks(ranks)
    first, told_by, happened = _first(ranks, clocks, named_rank)
    with_capsule = [rank for rank in ranks if rank.capsule]
    shown = first if first and first.capsule else next(iter(with_capsule), None)
    return RunReading(
        schema=RUN_SCHEMA,
        run=name,
        happened=happened,
        first_failing_rank=first.number if first else None,
        told_by=told_by,
        clock_seconds=clocks.seconds,
        report=shown.capsule if shown else None,
        others=tuple(
            RankEnd(rank=rank.number, source=rank.source, happened=_end(rank, first))
            for rank in ranks
            if rank is not shown
        ),
    )


class _Clocks:
    """The clocks of the hosts of a run, by the ends of the steps that several of them have: ranks step together."""

    def __init__(self, ranks: list[RankTraces]) -> None:
        """`seconds` is how far a corrected time may be off: 0 on one host, None where no step tells."""
        self._offsets: dict[str, float] = {}
        hosts = {rank.host: rank for rank in reversed(ranks) if rank.host}
        self.seconds: float | None = 0.0
        if len(hosts) < 2:
            return
        reference = _ends_of_steps(next(rank for rank in ranks if rank.host))
        spread = 0.0
        for host, rank in hosts.items():
            ends = _ends_of_steps(rank)
            apart = [ends[step] - reference[step] for step in ends.keys() & reference.keys()]
            if not apart:
                self.seconds = None
                self._offsets.clear()
                return
            self._offsets[host] = median(apart)
            spread = max(spread, max(abs(each - median(apart)) for each in apart))
        self.seconds = spread

    @property
    def may_be_off(self) -> float:
        """In seconds."""
        return _USUAL_CLOCKS_SECONDS if self.seconds is None else self.seconds

    def time(self, rank: RankTraces) -> float:
        """When the rank ran out of memory, in the clock of the first host; infinite where nothing tells."""
        return (rank.failed_at or math.inf) - self._offsets.get(rank.host, 0.0)


def _ends_of_steps(rank: RankTraces) -> Mapping[int, float]:
    return {step.step: step.time for step in reversed(rank.steps)}


def _first(ranks: list[RankTraces], clocks: _Clocks, named_rank: int | None) -> tuple[RankTraces | None, ToldBy, str]:
    """The rank that failed first, what tells it, and that in a sentence."""
    failed = sorted((rank for rank in ranks if rank.ended_by_memory), key=clocks.time)
    if len(failed) == 1:
        return failed[0], ToldBy.CAUSE, _alone(failed[0], ranks)
    if failed:
        apart = clocks.time(failed[1]) - clocks.time(failed[0])
        several = len({failed[0].host, failed[1].host}) > 1
        margin = max(
            clocks.may_be_off if several else 0.0, _SECOND * any(rank.is_told_in_seconds for rank in failed[:2])
        )
        if margin < apart < math.inf:
            return failed[0], ToldBy.TIMES, _by_times(failed, ranks, apart, clocks, several=several)
        named = [rank for rank in failed if rank.number == named_rank]
        if named:
            return named[0], ToldBy.LAUNCHER, _by_launcher(named[0], ranks)
        return None, ToldBy.NOTHING, _cannot_tell(failed, ranks, apart, margin)
    named = [rank for rank in ranks if rank.number == named_rank]
    if named:
        return named[0], ToldBy.LAUNCHER, _by_launcher(named[0], ranks)
    return _without_capsule(ranks)


def _cannot_tell(failed: list[RankTraces], ranks: list[RankTraces], apart: float, margin: float) -> str:
    start = f"Cannot tell which of {len(ranks)} ranks failed first: {_numbers(failed[:2])} ran out of memory"
    if not math.isfinite(apart):
        return f"{start}, and when is not known of each."
    return f"{start} {apart:.3f} s apart, and the clocks of their hosts may be {margin:.3f} s apart."


def _alone(first: RankTraces, ranks: list[RankTraces]) -> str:
    if len(ranks) == 1:
        return first.capsule.happened if first.capsule else f"The run ran out of memory: {first.error}"
    missed = [rank for rank in ranks if rank is not first and _MISSED.search(rank.error)]
    silent = [rank for rank in ranks if rank is not first and not rank.error]
    also = f"; {_numbers(missed)} missed it and gave up, which is a consequence" if missed else ""
    also += f"; {_numbers(silent)} {_left(silent)}" if silent else ""
    return f"Rank {first.number} failed first of {len(ranks)}: it alone ran out of memory{also}."


def _left(silent: list[RankTraces]) -> str:
    verb = "has" if len(silent) == 1 else "have"
    return f"{verb} no error of {'its' if len(silent) == 1 else 'their'} own"


def _by_times(
    failed: list[RankTraces], ranks: list[RankTraces], apart: float, clocks: _Clocks, *, several: bool
) -> str:
    sure = ""
    if several:
        known = "as the ends of the same steps show" if clocks.seconds is not None else "as clocks usually are"
        sure = f", more than the clocks of their hosts are apart ({clocks.may_be_off:.3f} s, {known})"
    return (
        f"Rank {failed[0].number} failed first of {len(ranks)}, {apart:.3f} s before {_numbers(failed[1:2])}{sure}."
    )  # fmt: skip


def _by_launcher(first: RankTraces, ranks: list[RankTraces]) -> str:
    silent = " It ended without a word, as what is killed does." if first.is_silent else ""
    return f"Rank {first.number} failed first of {len(ranks)}, by what the launcher says.{silent}"


def _without_capsule(ranks: list[RankTraces]) -> tuple[RankTraces | None, ToldBy, str]:
    """No rank ran out of the card's memory, as far as is known."""
    silent = [rank for rank in ranks if rank.is_silent]
    killed = _killed_by_host(ranks)
    if len(silent) == 1 and (len(ranks) == 1 or any(rank.error for rank in ranks)):
        why = (
            "the host killed a process of its group for want of memory (RAM), by the counter of the control group, so "
            "it was that: the card is not at fault"
            if killed
            else "it was killed, by the host for want of memory (RAM; exit code -9 or 137) or by somebody, or runs"
        )
        number = f"Rank {silent[0].number}" if len(ranks) > 1 else "The run"
        return silent[0], ToldBy.CAUSE, f"{number} ended without a word after step {_last_step(silent[0])}: {why}."
    failed = [rank for rank in ranks if rank.error and not _MISSED.search(rank.error)]
    if len(failed) == 1:
        return (
            failed[0],
            ToldBy.CAUSE,
            f"Rank {failed[0].number} of {len(ranks)} failed, not of memory: {failed[0].error}",
        )
    if not failed and not silent:
        return None, ToldBy.NOTHING, f"No rank of {len(ranks)} ran out of memory."
    return None, ToldBy.NOTHING, f"Cannot tell which of {len(ranks)} ranks failed first; none has an OOM capsule."


def _killed_by_host(ranks: list[RankTraces]) -> bool:
    events = [event for rank in ranks if rank.watched for event in rank.watched.events]
    return any(event.kind == "host-oom-kill" for event in events)


def _last_step(rank: RankTraces) -> int:
    return rank.steps[-1].step if rank.steps else 0


def _end(rank: RankTraces, first: RankTraces | None) -> str:
    """What became of a rank that is not shown."""
    if rank.capsule is not None:
        return f"{rank.capsule.happened} {rank.capsule.then}"
    missed = f"Missed rank {first.number} and gave up" if first and first is not rank else "Missed another rank"
    if _MISSED.search(rank.error):
        return f"{missed}: {rank.error}"
    if rank.error:
        return f"Failed: {rank.error}"
    if rank.is_silent:
        return f"Has no end after step {_last_step(rank)}: it waited, and was ended from outside, or it was killed."
    end = rank.watched.end if rank.watched else None
    return f"Ended with exit code {end.exit_code} after step {end.step}." if end else "Nothing more is known."


def _numbers(ranks: list[RankTraces]) -> str:
    """`rank 3`, `ranks 1, 2 and 3`."""
    numbers = [str(rank.number) for rank in ranks]
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"
