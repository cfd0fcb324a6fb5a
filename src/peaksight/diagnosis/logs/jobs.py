"""The logs of several ranks of one job: which of them failed first."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from peaksight.diagnosis.logs.explanation import explain, main_message
from peaksight.records import JobReading, LogEvidence, OomMessage, RankEnd, ToldBy

SCHEMA = "peaksight.job/1"
# What people call the file of a rank, and where torchrun's --log-dir puts it.
_IN_NAME = re.compile(
    r"(?:^|[^a-z])rank[_.=-]?(\d{1,6})(?!\d)[^/\\]*$|attempt_\d{1,4}[/\\](\d{1,6})[/\\]std(?:err|out)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Rank:
    """The log of one rank."""

    number: int
    source: str
    evidence: LogEvidence

    @property
    def shortage(self) -> OomMessage | None:
        """Its own out of memory; one that NCCL reports may be another rank's."""
        message = main_message(self.evidence)
        return None if message is None or message.dialect.startswith("nccl") else message

    @property
    def has_failed(self) -> bool:
        """Whether the log shows how it ended."""
        return bool(self.shortage or self.evidence.abort)

    @property
    def time(self) -> str:
        """When it failed."""
        ends = [end.time for end in (self.shortage, self.evidence.abort) if end]
        return "" if "" in ends else min(ends, default="")


def rank_of(path: str, evidence: LogEvidence) -> int | None:
    """The rank whose log this is, by the name of its file, else by its text; None for none and for several."""
    if match := _IN_NAME.search(path):
        return int(match[1] or match[2])
    said = {message.rank for message in evidence.messages if not message.is_warning}
    if not said and evidence.abort:
        said = {evidence.abort.rank}
    return said.pop() if len(said) == 1 else None


def explain_job(logs: Mapping[str, LogEvidence]) -> JobReading | None:
    """The logs by their paths as those of one job; None unless they are of several ranks and one ran out of memory.

    A log of no rank may be the launcher's, which names the rank too.
    """
    ranks = [_Rank(number, path, log) for path, log in logs.items() if (number := rank_of(path, log)) is not None]
    short = [rank for rank in ranks if rank.shortage]
    if not short or len({rank.number for rank in ranks}) != len(ranks) or len(ranks) == 1:
        return None
    first, told_by = _first(ranks, {log.root_cause_rank for log in logs.values()} - {None})
    shown = first or min(short, key=lambda rank: rank.number)
    others = sorted((rank for rank in ranks if rank is not shown), key=lambda rank: rank.number)
    return JobReading(
        schema=SCHEMA,
        happened=_happened(ranks, first, told_by),
        first_failing_rank=first.number if first else None,
        told_by=told_by,
        reading=explain(shown.evidence),
        others=tuple(RankEnd(rank=o.number, source=o.source, happened=_end(o), time=o.time) for o in others),
    )


def _first(ranks: list[_Rank], named: Collection[int | None]) -> tuple[_Rank | None, ToldBy]:
    """By the times where every rank that failed has another; the one that alone ran out of memory; torchrun's word."""
    failed = sorted((rank for rank in ranks if rank.has_failed), key=lambda rank: rank.time)
    if len(failed) > 1 and failed[0].time and failed[0].time != failed[1].time and not _turns_the_year(failed):
        return failed[0], ToldBy.TIMES
    short = [rank for rank in failed if rank.shortage]
    if len(short) == 1:
        return short[0], ToldBy.CAUSE
    said = [rank for rank in short if rank.number in named]
    return (said[0], ToldBy.LAUNCHER) if len(said) == 1 else (None, ToldBy.NOTHING)


def _turns_the_year(ranks: list[_Rank]) -> bool:
    """Whether December stands behind January: the times have no year."""
    months = [int(rank.time[:2]) for rank in ranks]
    return any(later - earlier > 1 for earlier, later in pairwise(months))


def _happened(ranks: list[_Rank], first: _Rank | None, told_by: ToldBy) -> str:
    """Which rank failed first, and what tells it, in one sentence."""
    others = [rank for rank in ranks if rank is not first]
    if first is None:
        short = _numbers([rank for rank in ranks if rank.shortage])
        return (
            f"Cannot tell which of {len(ranks)} ranks failed first: {short} each ran out of memory, and their logs do "
            "not all print a time there, or print the same."
        )
    if told_by is ToldBy.TIMES:
        then = min((rank for rank in others if rank.time), key=lambda rank: rank.time)
        return (
            f"Rank {first.number} failed first of {len(ranks)}, by the times in the logs: at {_clock(first)}, "
            f"{_numbers([then])} at {_clock(then)}."
        )
    if told_by is ToldBy.LAUNCHER:
        return f"Rank {first.number} failed first of {len(ranks)}, by what torchrun says: it names it the root cause."
    missed = [rank for rank in others if rank.evidence.abort]
    silent = [rank for rank in others if not rank.has_failed]
    also = f"; {_numbers(missed)} missed another and gave up" if missed else ""
    also += f"; how {_numbers(silent)} ended is not in the log" if silent else ""
    return f"Rank {first.number} failed first of {len(ranks)}, by the cause: it alone ran out of memory{also}."


def _end(rank: _Rank) -> str:
    """How the log of another rank ends."""
    if rank.shortage:
        return explain(rank.evidence).happened
    if rank.evidence.abort:
        return f"Missed another rank: {rank.evidence.abort.quote}"
    return "Neither about memory nor about another rank that was missing."


def _numbers(ranks: list[_Rank]) -> str:
    """`rank 3`, `ranks 1, 2 and 3`."""
    numbers = [str(number) for number in sorted(rank.number for rank in ranks)]
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(numbers[:-1])} and {numbers[-1]}"


def _clock(rank: _Rank) -> str:
    """Its time without zeros that nobody printed."""
    return rank.time.removesuffix(".000000")
