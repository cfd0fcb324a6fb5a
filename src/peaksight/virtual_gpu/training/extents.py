"""How large samples and batches are on the host, whatever they are made of."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch

_NUMBERS = (int, float, bool)


class Extent(NamedTuple):
    """The elements of all tensors, arrays, lists and texts together, and the longest side of any of them."""

    elements: int
    longest: int

    def exceeds(self, other: "Extent") -> bool:
        """Whether it has more elements, or a longer side."""
        return self.elements > other.elements or self.longest > other.longest

    def joined(self, other: "Extent") -> "Extent":
        """The larger number of either kind."""
        return Extent(max(self.elements, other.elements), max(self.longest, other.longest))


NOTHING = Extent(0, 0)


def extent_of(sample: Any) -> Extent:
    """That of a tensor, an array, an image, a text, or of whatever holds some."""
    shapes = list(_shapes(sample))
    return Extent(sum(map(math.prod, shapes)), max(chain.from_iterable(shapes), default=0))


def _shapes(sample: Any) -> Iterator[tuple[int, ...]]:
    """Those of what `sample` holds; a text or a list of numbers has one side, anything else without a size none."""
    if isinstance(sample, torch.Tensor):
        yield tuple(sample.shape)
    elif isinstance(sample, str | bytes) or _is_row(sample):
        yield (len(sample),)
    elif (parts := _parts(sample)) is not None:
        for part in parts:
            yield from _shapes(part)
    else:
        yield _shape_by_itself(sample)


def _is_row(sample: Any) -> bool:
    return isinstance(sample, Sequence) and all(isinstance(part, _NUMBERS) for part in sample)


def _parts(sample: Any) -> Sequence[Any] | None:
    if hasattr(sample, "keys"):
        return [sample[key] for key in sample.keys()]  # noqa: SIM118 (not every one is a Mapping)
    if dataclasses.is_dataclass(sample):
        return list(vars(sample).values())
    return sample if isinstance(sample, Sequence) else None


def _shape_by_itself(sample: Any) -> tuple[int, ...]:
    """Of an array, and of an image, whose size is its width and height."""
    for sides in (getattr(sample, "shape", None), getattr(sample, "size", None)):
        if isinstance(sides, tuple):
            return sides
    return ()


def largest_places(extents: Sequence[Extent], than: Extent) -> list[int]:
    """Where the most elements are and where the longest side is, in their order, if that is more than `than` has."""
    kinds = range(len(than)) if extents else ()
    places = {max(range(len(extents)), key=lambda place: extents[place][kind]) for kind in kinds}
    return [place for place in sorted(places) if extents[place].exceeds(than)]
