"""Masks of those picks that lie in a range of the choices, as `(labels >= 100) & (labels < 500)` asks for.

An adaptive softmax goes through its clusters that way and checks that every label was in one: even shares add up.
"""

from typing import Any, NamedTuple

import torch

from peaksight.virtual_gpu.tensors.even_shares import choices
from peaksight.virtual_gpu.tensors.known import family_of
from peaksight.virtual_gpu.tensors.notes import noted

aten = torch.ops.aten

PICKED = "_peaksight_picked"
CONJUNCTIONS = {aten.bitwise_and.Tensor, aten.logical_and.default}


class Picked(NamedTuple):
    """What `num_picks` of `num_choices` are true where they are at least `first` and below `end`."""

    num_picks: int
    num_choices: int
    first: int
    end: int

    @property
    def num_true(self) -> int:
        """How many that is, if each is picked as often, the first ones once more."""
        each, num_more = divmod(self.num_picks, self.num_choices)
        return each * max(0, self.end - self.first) + max(0, min(self.end, num_more) - self.first)


def result(func: Any, args: tuple[Any, ...]) -> Picked | None:
    """What of the choices `func(*args)` is true for, None where that isn't known."""
    if func in CONJUNCTIONS:
        if args[0].shape != args[1].shape:
            return None
        return _both(*(noted(mask, PICKED) for mask in args[:2]))
    if func not in RANGES or not isinstance(args[1], int) or not (num_choices := choices(args[0])):
        return None
    first, end = RANGES[func](args[1], num_choices)
    return Picked(args[0].numel(), num_choices, max(0, first), min(num_choices, end))


def remember(out: Any, picked: Picked) -> None:
    """`out` is true for these, until it is written to."""
    setattr(out, PICKED, (picked, family_of(out)))


def _both(a: Picked | None, b: Picked | None) -> Picked | None:
    if a is None or b is None or a[:2] != b[:2]:
        return None
    return a._replace(first=max(a.first, b.first), end=min(a.end, b.end))


# The range of choices for which a comparison with a number is true.
RANGES: dict[Any, Any] = {
    aten.ge.Scalar: lambda number, num_choices: (number, num_choices),
    aten.gt.Scalar: lambda number, num_choices: (number + 1, num_choices),
    aten.lt.Scalar: lambda number, num_choices: (0, number),
    aten.le.Scalar: lambda number, num_choices: (0, number + 1),
}
