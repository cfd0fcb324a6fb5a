"""Where a loop over lists, tuples and dictionaries stands: its iterators, which no variable names."""

import ast
import gc
from collections.abc import Collection, Iterator
from operator import length_hint
from typing import Any

from peaksight.virtual_gpu.training.extents import NOTHING, Extent, extent_of, largest_places
from peaksight.virtual_gpu.unreached.lengths import below_bar, range_of
from peaksight.virtual_gpu.unreached.values import UNKNOWN, Bound, Scope

_SEQUENCES = (list, tuple)
_VIEWS = {"keys", "values", "items"}
_BARS = {"tqdm"}
_NO_ITEMS = (int, float, str, bool, type(None))


class Place:
    """Where a loop stands that goes through `elements`; `ahead` has those to come, or as many."""

    def __init__(self, elements: Collection[Any], ahead: Any, outermost: Iterator[Any] | None = None) -> None:
        """`outermost` is what the loop itself asks, as an `enumerate` around `ahead`; None where nothing can ask it."""
        self._extents = list(map(_extent_of_round, elements))
        self._ahead, self._outermost = ahead, outermost
        self._trained = NOTHING
        for extent in self._extents[: self._num_begun() - 1]:
            self._trained = self._trained.joined(extent)

    def _num_begun(self) -> int:
        return len(self._extents) - length_hint(self._ahead)

    def rounds_to_larger(self) -> int:
        """After how many rounds the first of the largest elements is trained on, 0 if none is larger than those so far.

        The round that ends has trained on its element.
        """
        num_begun = self._num_begun()
        self._trained = self._trained.joined(self._extents[num_begun - 1])
        places = largest_places(self._extents[num_begun:], self._trained)
        return places[0] + 1 if places else 0

    def skip(self, num_rounds: int) -> bool:
        """Whether the loop leaves the next elements out."""
        if self._outermost is not None:
            for _ in range(num_rounds):
                next(self._outermost)
        return self._outermost is not None


def place_of(loop: ast.For, scope: Scope) -> Place | None:
    """Where `loop` stands; None where it goes through something else, or that cannot be found."""
    found = _named(loop.iter, scope) or _nameless(loop.target, scope)
    return Place(*found) if found is not None else None


def indexed_place(loop: ast.For, scope: Scope) -> Place | None:
    """Where a loop over a range stands that takes the elements of lists by its number, None if it is none."""
    if not isinstance(loop.target, ast.Name):
        return None
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    lists = [value for node in nodes if type(value := _indexed(node, loop.target.id, scope)) in _SEQUENCES]
    numbers = range_of(loop.iter, scope) if lists else range(0)
    if not numbers:
        return None
    elements = [lists[0][number] if len(lists) == 1 else [each[number] for each in lists] for number in numbers]
    return Place(elements, numbers[numbers.index(scope.value(loop.target)) + 1 :])


def _indexed(node: ast.AST, index: str, scope: Scope) -> Any:
    match node:
        case ast.Subscript(value=value, slice=ast.Name(id=name)) if name == index:
            return scope.value(value)
    return UNKNOWN


_Found = tuple[Any, Iterator[Any], Iterator[Any]]


def _named(node: ast.expr, scope: Scope) -> _Found | None:
    """Of what `node` names, and of `enumerate`, `zip` and a progress bar around it."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            return _around(_named(inner, scope), enumerate)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[inner, *_]) if name in _BARS:
            return _named(inner, scope)
        case ast.Call(func=ast.Name(id="zip"), args=[_, _, *_] as members):
            return _zipped([_named(member, scope) for member in members])
        case ast.Call(func=method, args=[]):
            bound = scope.value(method)
            if isinstance(bound, Bound) and type(bound.receiver) is dict and bound.function.__name__ in _VIEWS:
                return _one_of(bound.receiver, getattr(bound.receiver, bound.function.__name__)())
    elements = below_bar(scope.value(node))
    return _one_of(elements, elements) if type(elements) in (*_SEQUENCES, dict) else None


def _one_of(container: Any, elements: Any) -> _Found | None:
    """The one iterator of its kind that goes through `container`."""
    kind = type(iter(elements))
    iterators = [each for each in gc.get_referrers(container) if type(each) is kind]
    return (elements, iterators[0], iterators[0]) if len(iterators) == 1 else None


def _around(found: _Found | None, kind: type[Iterator[Any]]) -> _Found | None:
    """With the iterator of `kind` around it."""
    if found is None:
        return None
    elements, iterator, outermost = found
    holders = [each for each in gc.get_referrers(outermost) if type(each) is kind]
    return elements, iterator, holders[0] if holders else outermost


def _zipped(members: list[_Found | None]) -> _Found | None:
    """What several go through together."""
    known = [member for member in members if member is not None]
    holders = [each for each in gc.get_referrers(known[0][2]) if type(each) is tuple] if known == members else []
    zips = [each for holder in holders for each in gc.get_referrers(holder) if type(each) is zip]
    if len(zips) != 1:
        return None
    shortest = min(known, key=lambda member: len(member[0]))
    return list(zip(*(member[0] for member in known), strict=False)), shortest[1], zips[0]


def _nameless(target: ast.expr, scope: Scope) -> _Found | None:
    """Of a list without a name, as of `sorted(...)`, by what `target` stands for now."""
    names = [node for node in ast.walk(target) if isinstance(node, ast.Name)]
    values = [value for name in names if not isinstance(value := scope.value(name), _NO_ITEMS) and value is not UNKNOWN]
    objects = gc.get_objects() if values else []
    found = [each for each in map(_by_reduction, objects) if each and _gave_one_of(each, values)]
    return found[0] if len(found) == 1 else None


def _by_reduction(iterator: Any) -> _Found | None:
    if type(iterator) not in (type(iter([])), type(iter(()))) or not length_hint(iterator):
        return None
    _, (elements, *_), *_ = iterator.__reduce__()
    return elements, iterator, iterator


def _gave_one_of(found: _Found, values: list[Any]) -> bool:
    """Whether the last element is one of `values`, or holds one."""
    elements, iterator, _ = found
    place = len(elements) - length_hint(iterator) - 1
    last = elements[place] if place >= 0 else UNKNOWN
    given = last if type(last) in _SEQUENCES else [last]
    return any(each is value for each in [last, *given] for value in values)


def _extent_of_round(element: Any) -> Extent:
    """Of a number the number itself, as of a length or a size that a batch is then made with."""
    return Extent(element, element) if type(element) is int else extent_of(element)
