"""How ranks of one job differ: whether by much, and by what at their peaks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isclose

from peaksight.records import Capture, Category, Holder, RankDifference, Report

MAX_DIFFERENCES = 6
# What makes a smaller part of the peak than this is not told of.
MIN_SHARE = 0.002
# Ranks whose peaks differ by no more than this peak alike: shards of odd sizes differ by a little.
ALIKE = 0.01


def peak_alike(a: Sequence[Capture], b: Sequence[Capture]) -> bool:
    """Whether two ranks, each with a capture a card, peak at about the same."""
    peaks = [[(run.peak_allocated_bytes, run.peak_reserved_bytes) for run in runs] for runs in (a, b)]
    flat = [[num_bytes for pair in pairs for num_bytes in pair] for pairs in peaks]
    return len(a) == len(b) and all(isclose(x, y, rel_tol=ALIKE) for x, y in zip(*flat, strict=True))


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
