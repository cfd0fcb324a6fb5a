"""Random numbers of the card, drawn on the host where they may decide a length or a branch.

They aren't those that the card draws, but of the same distribution: of a mask that is true with a probability of 0.3,
as much is true as on the card but for chance. What decides by them is noted, as another run of the card decides
otherwise.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

import torch

aten = torch.ops.aten

SEED = 0
MEDIAN = 0.5
# What masks, positions, lengths and labels are made of. Not what weights are made of: what they do is unknown anyway.
DECIDING = {
    aten.rand.default,
    aten.rand_like.default,
    aten.bernoulli.default,
    aten.bernoulli.p,
    aten.bernoulli_.float,
    aten.bernoulli_.Tensor,
    aten.randint.default,
    aten.randint.low,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
}


@cache
def draws(func: Any) -> bool:
    """Whether `func` takes random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())


def is_lone(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the host draws one number between 0 and 1, as for whether a layer is dropped (`torch.rand([])`).

    Where the script sets no seed it is the median: of many steps some drop nothing, and these peak.
    """
    return func is aten.rand.default and prod(args[0]) == 1 and kwargs.get("generator") is None


class Draws:
    """A generator beside the script's, which goes on as if nothing had been drawn."""

    def __init__(self) -> None:
        """At its first number."""
        self.restart()

    def restart(self) -> None:
        """A run begins, which draws the same numbers as each."""
        self._state = torch.Generator("cpu").manual_seed(SEED).get_state()

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """What is drawn on the host meanwhile is taken from this one."""
        generator = torch.default_generator
        others = generator.get_state()
        generator.set_state(self._state)
        try:
            yield
        finally:
            self._state = generator.get_state()
            generator.set_state(others)
