"""Who holds what earlier steps have left behind."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Hold
from peaksight.units import format_bytes

NUM_NAMES = 3
_INDEX = re.compile(r"\[\d+\]")


class Holder(NamedTuple):
    """A `name` (`losses[*]`) of the frame `where` (`train.py:main`), and how much of what was asked for it holds."""

    name: str
    where: str
    by_graph: bool
    size_bytes: int


def names_of(evidence: Evidence, allocations: Sequence[Allocation]) -> Iterator[str]:
    """The names that hold most of `allocations`: "`losses[*]` in train.py:main holds 1.20 GiB by its graph"."""
    holders = holders_of(evidence, allocations)
    for each in holders:
        by_graph = " by its graph" if each.by_graph else ""
        yield f"`{each.name}` in {each.where} holds {format_bytes(each.size_bytes)}{by_graph}"
    looks = _looks(evidence)
    if not holders and any(_was_looked_at(allocation, looks) for allocation in allocations):
        yield "no variable of the running functions leads to it: a reference cycle, or an object that C++ holds"


def holders_of(evidence: Evidence, allocations: Sequence[Allocation]) -> list[Holder]:
    """The names that hold most of `allocations`, the one that holds most first."""
    sizes: dict[tuple[str, str, bool], int] = defaultdict(int)
    spelled: dict[str, set[str]] = defaultdict(set)
    usual, looks = _usual_holds(evidence), _looks(evidence)
    for allocation in allocations:
        hold = last_hold(evidence, allocation)
        if hold is None and not _was_looked_at(allocation, looks):
            hold = usual.get(_place(allocation))
        if hold is not None:
            name = _INDEX.sub("[*]", hold.name)
            spelled[name].add(hold.name)
            sizes[name, hold.where, hold.by_graph] += allocation.allocated_bytes
    most = sorted(sizes.items(), key=lambda item: -item[1])[:NUM_NAMES]
    return [
        Holder(name if len(spelled[name]) > 1 else min(spelled[name]), where, by_graph, size)
        for (name, where, by_graph), size in most
    ]


def _looks(evidence: Evidence) -> list[tuple[int, int]]:
    return sorted({(hold.step, hold.tick) for hold in evidence.capture.holds})


def _usual_holds(evidence: Evidence) -> dict[tuple[str, str, str], Hold]:
    """By which name what was made at a place was held in a later step: not every step is looked at."""
    holds = ((a, last_hold(evidence, a)) for a in evidence.capture.allocations if a.born in evidence.holds)
    return {_place(a): hold for a, hold in holds if hold is not None and hold.step > a.step}


def _was_looked_at(allocation: Allocation, looks: Sequence[tuple[int, int]]) -> bool:
    """Whether one of `looks`, steps and ticks, came in a later step while `allocation` was alive."""
    following = bisect_left(looks, (allocation.step + 1, 0))
    return following < len(looks) and (allocation.died is None or looks[following][1] < allocation.died)


def _place(allocation: Allocation) -> tuple[str, str, str]:
    return allocation.source, allocation.module, allocation.op


def last_hold(evidence: Evidence, allocation: Allocation) -> Hold | None:
    """By which name `allocation` was held in a step after its own, at the last look; None if none was found."""
    holds = [hold for hold in evidence.holds.get(allocation.born, ()) if hold.tick > allocation.born]
    later = [hold for hold in holds if hold.step > allocation.step]
    return next(iter(reversed(later or holds)), None)
