"""What categories and places hold at moments of a run, by one sweep over it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import itemgetter

from peaksight.attribution.categories import Categories
from peaksight.records import Allocation, Capture, Category, Place
from peaksight.records.module_paths import fold_layers

_TOP = 5

# A place by its number, and what it holds.
_Top = list[tuple[int, int]]


class Places:
    """The places of the allocations of one capture, numbered as they come up."""

    def __init__(self, capture: Capture) -> None:
        """Find the place of each allocation: `of` has its number."""
        self._categories, self._folded = Categories(capture), dict[str, str]()
        self._numbers: dict[tuple[Category, str, str, str], int] = {}
        self.of = [self._number(allocation) for allocation in capture.allocations]
        self.all = [Place(category=c, module=m, source=s, op=op) for c, m, s, op in self._numbers]

    def _number(self, allocation: Allocation) -> int:
        module = self._folded.get(allocation.module)
        if module is None:
            module = self._folded[allocation.module] = fold_layers(allocation.module)
        place = self._categories.of(allocation), module, allocation.source, allocation.op
        return self._numbers.setdefault(place, len(self._numbers))


def held_at(capture: Capture, places: Places, ticks: Iterable[int]) -> Iterator[tuple[Counter[Category], _Top]]:
    """After each of `ticks`, in order, what each category holds, and the places that hold most."""
    held = _Held(places)
    births, deaths = _Changes(_births(capture, places)), _Changes(_deaths(capture, places))
    for tick in ticks:
        births.apply(held, tick)
        deaths.apply(held, tick)
        yield held.by_category.copy(), nlargest(_TOP, held.by_place.items(), key=itemgetter(1))


class _Held:
    """What each place and each category holds at a moment; a place without a byte is left out."""

    def __init__(self, places: Places) -> None:
        self.by_place: dict[int, int] = {}
        self.by_category: Counter[Category] = Counter()
        self._category_of = [place.category for place in places.all]

    def change(self, place: int, num_bytes: int) -> None:
        """The place holds so much more, or less."""
        self.by_category[self._category_of[place]] += num_bytes
        held_bytes = self.by_place.get(place, 0) + num_bytes
        if held_bytes:
            self.by_place[place] = held_bytes
        else:
            self.by_place.pop(place, None)


class _Changes:
    """Changes of what places hold, in order: tick, place, bytes."""

    def __init__(self, changes: Iterable[tuple[int, int, int]]) -> None:
        self._rest = iter(changes)
        self._next = next(self._rest, None)

    def apply(self, held: _Held, until: int) -> None:
        """Those up to the tick `until`."""
        while self._next is not None and self._next[0] <= until:
            _, place, num_bytes = self._next
            held.change(place, num_bytes)
            self._next = next(self._rest, None)


def _births(capture: Capture, places: Places) -> Iterator[tuple[int, int, int]]:
    for allocation, place in zip(capture.allocations, places.of, strict=True):
        yield allocation.born, place, allocation.allocated_bytes


def _deaths(capture: Capture, places: Places) -> list[tuple[int, int, int]]:
    pairs = zip(capture.allocations, places.of, strict=True)
    return sorted((a.died, place, -a.allocated_bytes) for a, place in pairs if a.died is not None)
