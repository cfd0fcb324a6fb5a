"""How ranks of one job differ: whether at all, and by what at their peaks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from peaksight.records import Capture, Category, Holder, RankDifference, Report

MAX_DIFFERENCES = 6
# What makes a smaller part of the peak than this is not told of.
MIN_SHARE = 0.002


def act_alike(a: Sequence[Capture], b: Sequence[Capture]) -> bool:
    """Whether two ranks, each with a capture a card, ask their cards for the same in the same order."""
    return [tuple(_asked_for(capture)) for capture in a] == [tuple(_asked_for(capture)) for capture in b]


def _asked_for(capture: Capture) -> Iterator[tuple[int, int | None, int, int]]:
    return ((each.born, each.died, each.requested_bytes, each.stream) for each in capture.allocations)


def rank_differences(worst: Report, others: Iterable[Report]) -> tuple[RankDifference, ...]:
    """What `worst` holds at its peak beyond each of `others` at theirs, by line and category, largest first."""
    mine = _held(worst.live_at_peak)
    found = [
        RankDifference(rank=other.rank, category=category, source=source, difference_bytes=num_bytes)
        for other in others
        for (category, source), num_bytes in _beyond(mine, _held(other.live_at_peak))
        if abs(num_bytes) >= MIN_SHARE * worst.peak.allocated_bytes
    ]
    return tuple(sorted(found, key=lambda each: -abs(each.difference_bytes))[:MAX_DIFFERENCES])


def _held(holders: Iterable[Holder]) -> Counter[tuple[Category, str]]:
    held: Counter[tuple[Category, str]] = Counter()
    for holder in holders:
        held[holder.category, holder.source] += holder.bytes
    return held


def _beyond(
    mine: Counter[tuple[Category, str]], other: Counter[tuple[Category, str]]
) -> Iterator[tuple[tuple[Category, str], int]]:
    for key in mine | other:
        yield key, mine[key] - other[key]
