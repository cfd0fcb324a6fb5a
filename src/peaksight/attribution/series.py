"""What each category holds over the run: at the peak of every step, and along the whole of it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from peaksight.attribution.categories import Categories
from peaksight.records import Allocation, Capture, Category, CategoryBytes, SeriesPoint, StepPeak

NUM_POINTS = 240

_Event = tuple[int, int, Category]
_Held = tuple[CategoryBytes, ...]


class Series:
    """The course of one run, event by event."""

    def __init__(self, capture: Capture) -> None:
        """Sort what happened in `capture`."""
        categories = Categories(capture)
        kinds = [(allocation, categories.of(allocation)) for allocation in capture.allocations]
        births = [(a.born, a.allocated_bytes, kind) for a, kind in kinds]
        deaths = [(a.died, -a.allocated_bytes, kind) for a, kind in kinds if a.died is not None]
        self._events: list[_Event] = sorted(births + deaths)
        self._births = capture.allocations
        totals = accumulate(size for _, size, _ in self._events)
        self._levels = dict(zip((tick for tick, _, _ in self._events), totals, strict=True))

    def at_peaks(self, steps: Iterable[StepPeak]) -> tuple[_Held, ...]:
        """For each of `steps` what its peak is of: it adds up to the peak."""
        ticks = [self._peak_tick(step) for step in steps]
        held = dict(self._held_at(ticks))
        return tuple(held[tick] for tick in ticks)

    def points(self) -> tuple[SeriesPoint, ...]:
        """At most `NUM_POINTS` moments, in order: the fullest of each of equally many births."""
        size = -(-len(self._births) // NUM_POINTS) or 1
        parts = [self._births[first : first + size] for first in range(0, len(self._births), size)]
        fullest = [max(part, key=lambda birth: self._levels[birth.born]) for part in parts]
        held = dict(self._held_at(birth.born for birth in fullest))
        return tuple(_point(birth, held[birth.born]) for birth in fullest)

    def _peak_tick(self, step: StepPeak) -> int:
        """The first tick of `step` at which its peak is reached, 0 where it is what was there when it began."""
        inside = (tick for tick, _, _ in self._events if step.first_tick <= tick <= step.last_tick)
        return next((tick for tick in inside if self._levels[tick] == step.peak_allocated_bytes), step.first_tick - 1)

    def _held_at(self, ticks: Iterable[int]) -> Iterator[tuple[int, _Held]]:
        """What the categories hold after each of `ticks`, those with anything and largest first."""
        held: Counter[Category] = Counter()
        events = iter([*self._events, (1 << 62, 0, Category.OTHER)])
        event = next(events)
        for tick in sorted(set(ticks)):
            while event[0] <= tick:
                held[event[2]] += event[1]
                event = next(events)
            yield tick, _sorted(held)


def _sorted(held: Counter[Category]) -> _Held:
    return tuple(CategoryBytes(category=category, bytes=size) for category, size in held.most_common() if size)


def _point(birth: Allocation, held: _Held) -> SeriesPoint:
    return SeriesPoint(tick=birth.born, step=birth.step, phase=birth.phase, held=held)
