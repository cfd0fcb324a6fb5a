"""The course of a run: how full the card was over its allocations, and what with."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import groupby, pairwise

from peaksight.attribution.held import Places, held_at
from peaksight.attribution.levels import Levels, Part
from peaksight.records import Allocation, Capture, Category, CategoryBytes, Phase
from peaksight.records.course import CategoryColumn, Course, PhaseSpan, PlaceBytes

NUM_PARTS = 600
NUM_SPANS = 400

# The place in the order of births at which a span begins, its step and its phase.
_Run = tuple[int, int, Phase]


def course_of(capture: Capture, levels: Levels, failed_tick: int | None) -> Course | None:
    """The course of `capture`, which has `levels`; None if nothing was allocated."""
    if not capture.allocations:
        return None
    parts = _parts(capture, levels)
    ticks = tuple(part.tick for part in parts)
    places = Places(capture)
    by_category, top = zip(*held_at(capture, places, ticks), strict=True)
    makers = _makers(capture.allocations, ticks)
    named, rows = _named(top)
    return Course(
        ticks=ticks,
        steps=tuple(maker.step for maker in makers),
        phases=tuple(maker.phase for maker in makers),
        allocated_bytes=tuple(part.most_bytes for part in parts),
        least_allocated_bytes=tuple(part.least_bytes for part in parts),
        held=tuple(_columns(by_category)),
        top=rows,
        places=tuple(places.all[place] for place in named),
        spans=_spans(capture.allocations, levels.ticks[-1]),
        peak_tick=capture.peak_tick,
        failed_tick=failed_tick,
    )


def held_at_tick(course: Course, tick: int) -> tuple[CategoryBytes, ...]:
    """What the categories hold at `tick`, which is one of `course`: those with anything, largest first."""
    part = course.ticks.index(tick)
    held = (CategoryBytes(category=column.category, bytes=column.bytes[part]) for column in course.held)
    return tuple(sorted((each for each in held if each.bytes), key=lambda each: -each.bytes))


def failed_tick(capture: Capture, unlimited: Capture | None) -> int | None:
    """Where the first failure of `capture` falls in the course of `unlimited`, or in its own where there is no other.

    Both runs allocate the same up to there: it is at the birth with as many before it in `unlimited`. What an operator
    does without on a full card is not counted. None where nothing failed, or what came before was not the same.
    """
    if not capture.failures:
        return None
    tick = capture.failures[0].tick
    if unlimited is None:
        return tick
    before = [a.requested_bytes for a in capture.allocations if a.born <= tick and not a.dispensable]
    whole = [a for a in unlimited.allocations if not a.dispensable][: len(before) + 1]
    is_same = before == [a.requested_bytes for a in whole[:-1]]
    return whole[-1].born if is_same and whole else None


def _parts(capture: Capture, levels: Levels) -> list[Part]:
    """The parts in order, those of a moment that no other stands for included."""
    births = [allocation.born for allocation in capture.allocations]
    size = -(-len(births) // NUM_PARTS)
    parts = {part.tick: part for part in levels.parts(sorted({*births[::size], *_first_births(capture, births)}))}
    for tick in (capture.peak_tick, *map(levels.peak_tick, capture.steps)):
        if tick is not None:
            parts.setdefault(tick, levels.moment(tick))
    return [parts[tick] for tick in sorted(parts)]


def _first_births(capture: Capture, births: Sequence[int]) -> Iterator[int]:
    """The tick of the first birth in each step."""
    for step in capture.steps:
        place = bisect_right(births, step.first_tick - 1)
        if place < len(births):
            yield births[place]


def _makers(allocations: Sequence[Allocation], ticks: Sequence[int]) -> list[Allocation]:
    """The last that was born by each of `ticks`."""
    return [allocations[bisect_right(allocations, tick, key=lambda each: each.born) - 1] for tick in ticks]


def _columns(held: Sequence[Counter[Category]]) -> Iterator[CategoryColumn]:
    for category in Category:
        column = tuple(each[category] for each in held)
        if any(column):
            yield CategoryColumn(category=category, bytes=column)


def _named(top: Sequence[Sequence[tuple[int, int]]]) -> tuple[list[int], tuple[tuple[PlaceBytes, ...], ...]]:
    """The places in `top`, and its rows by their indices in these."""
    named = list(dict.fromkeys(place for row in top for place, _ in row))
    indices = {place: index for index, place in enumerate(named)}
    rows = (tuple(PlaceBytes(place=indices[place], bytes=size) for place, size in row) for row in top)
    return named, tuple(rows)


def _spans(allocations: Sequence[Allocation], last_tick: int) -> tuple[PhaseSpan, ...]:
    """The runs of births of one step and phase; of more than `NUM_SPANS` those with most births."""
    runs = _runs(allocations)
    ends = [*(allocations[first].born - 1 for first, _, _ in runs[1:]), last_tick]
    return tuple(
        PhaseSpan(first_tick=allocations[first].born, last_tick=end, step=step, phase=phase)
        for (first, step, phase), end in zip(runs, ends, strict=True)
    )


def _runs(allocations: Sequence[Allocation]) -> list[_Run]:
    """Where births of another step or phase begin; the short ones are left out where there are too many."""
    kinds = [(allocation.step, allocation.phase) for allocation in allocations]
    runs = [(0, *kinds[0])]
    runs += [(place, *kind) for place, (before, kind) in enumerate(pairwise(kinds), start=1) if kind != before]
    if len(runs) <= NUM_SPANS:
        return runs
    lengths = [end - first for (first, *_), end in zip(runs, [*(run[0] for run in runs[1:]), len(kinds)], strict=True)]
    longest = nlargest(NUM_SPANS - 1, range(1, len(runs)), key=lengths.__getitem__)
    kept = [runs[0], *(runs[place] for place in sorted(longest))]
    return [next(same) for _, same in groupby(kept, key=lambda run: run[1:])]
