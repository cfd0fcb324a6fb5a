"""What a kernel takes from the caching allocator beside its results, and gives back before it returns.

A rule is a function of one `KernelCall` that returns signed bytes in the order of the card: blocks taken are positive,
blocks given back are negative. What is not given back explicitly is, at the end. The results are made first, or where
`RESULTS` stands: one at each, and all that are left at the last; in another order than theirs each has a `Result`. At
`EMPTY_CACHE` the allocator gives back what it has cached; `CUBLAS_HANDLE` stands where a kernel of cuBLAS begins. A
rule that does not know a case returns None: the case is then listed under *Not simulated*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from peaksight.virtual_gpu.device_rules import DeviceRules

Temporaries = Sequence[int]


class _Place(int):
    """A mark among sizes, told by identity: a block of no bytes is equal to it."""


RESULTS = _Place(0)


class Result(_Place):
    """The result at `position` alone, where they aren't made in their order: then each has its mark."""

    position: int

    @classmethod
    def at(cls, position: int) -> "Result":
        """The mark of the result at `position`."""
        mark = cls(0)
        mark.position = position
        return mark


class _Mark(int):
    """As a place, of no result."""


# `emptyCache` of c10/cuda/CUDACachingAllocator.h.
EMPTY_CACHE = _Mark(0)
# Here a kernel asks for a handle of cuBLAS, whose workspace is taken once and stays.
CUBLAS_HANDLE = _Mark(0)


class Dispensable(int):
    """Bytes of a block that a kernel does without where the card has not so much left: another kernel runs then."""


@dataclass(slots=True)
class KernelCall:
    """One operator that ran on the card: `func(*args, **kwargs)` returned `out`.

    `tried` holds what the run has tried kernels for, as `cudnn.benchmark` does at the first call of a kind.
    """

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    rules: DeviceRules
    tried: set[object] = field(default_factory=set)

    def argument(self, name: str) -> Any:
        """The value of the argument called `name`, its default where it was not given."""
        for position, argument in enumerate(self.func._schema.arguments):
            if argument.name == name:
                if position < len(self.args):
                    return self.args[position]
                return self.kwargs.get(name, argument.default_value)
        raise KeyError(f"{self.func} has no argument {name!r}")


def num_places(temporaries: Temporaries) -> int:
    """How often results are marked among `temporaries`."""
    return sum(isinstance(size, _Place) for size in temporaries)


Rule = Callable[[KernelCall], Temporaries | None]


def together(*sizes: int) -> Temporaries:
    """Blocks that are alive at the same time, given back in reverse order."""
    return (*sizes, *given_back(sizes))


def given_back(sizes: Sequence[int]) -> Temporaries:
    """Those of `sizes` that are still alive after them, in reverse order."""
    alive: list[int] = []
    for size in sizes:
        if size > 0:
            alive.append(size)
        elif size < 0:
            alive.reverse()
            alive.remove(-size)
            alive.reverse()
    return tuple(-size for size in reversed(alive))
