"""What was found, in words and in few numbers, from judged tensors alone."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from peaksight.records.certificate import BlockDifference, Invariant, Judged, TensorDifference, Worst
from peaksight.verification.blocks import block_of


def worst(judged: Sequence[Judged]) -> Worst | None:
    """The tensor that is furthest off, in the first step in which one is too far; None where nothing differs.

    An error shows in the gradients first: later steps, and what is made of the gradients, only repeat it.
    """
    differing = [each for each in judged if not each.tensor.bitwise]
    if not differing:
        return None
    too_far = [each for each in differing if each.excess > 1]
    first = min((each.tensor.step for each in too_far), default=0)
    candidates = [each for each in too_far if each.tensor.step == first] or differing
    gradients = [each for each in candidates if each.tensor.kind == "gradient"]
    return _worst(max(gradients or candidates, key=lambda each: (each.excess, each.tensor.relative)))


def _worst(each: Judged) -> Worst:
    tensor = each.tensor
    return Worst(
        kind=tensor.kind,
        name=tensor.name,
        block=block_of(tensor.name),
        step=tensor.step,
        rank=tensor.rank,
        relative=finite(tensor.relative),
        tolerance=finite(each.tolerance / tensor.norm if tensor.norm else 0.0),
        excess=finite(each.excess),
    )


def finite(value: float) -> float | None:
    """`value`, None for what JSON has no number for."""
    return value if isfinite(value) else None


def blocks(found: Sequence[TensorDifference], caught: Mapping[str, float | None]) -> tuple[BlockDifference, ...]:
    """The gradients by block, in the order of the model."""
    largest: dict[str, float] = {}
    for each in found:
        if each.kind == "gradient":
            block = block_of(each.name)
            largest[block] = max(largest.get(block, 0.0), each.relative)
    return tuple(
        BlockDifference(block=block, relative=finite(value), smallest_caught=caught.get(block))
        for block, value in largest.items()
    )


def largest(caught: Mapping[str, float | None]) -> float | None:
    """The error that is caught in whatever block it is; None where in one none is."""
    values = list(caught.values())
    return max((value for value in values if value is not None), default=None) if None not in values else None


def beyond(judged: Sequence[Judged]) -> str:
    """Why it is more than rounding."""
    found = worst(judged)
    assert found is not None
    what = "is not finite" if found.relative is None else f"differs by {found.relative:.1e} of its norm"
    return f"the {found.kind} of {found.name} {what} in step {found.step}; rounding explains {found.tolerance or 0:.1e}"


def broken(invariant: Invariant) -> str:
    """One sentence about what is not the same."""
    where = f" in step {invariant.step}" if invariant.step else ""
    return f"{invariant.name}{where}: {invariant.original} in the original, {invariant.changed} in the changed run"


def first_of_each(facts: Iterable[Invariant]) -> list[Invariant]:
    """The first one of each name."""
    return list({each.name: each for each in reversed(list(facts))}.values())[::-1]


def rounded_more_coarsely(judged: Sequence[Judged]) -> tuple[str, ...]:
    """Of runs that differ in their rounding alone: why it is more than another order of the same."""
    worst = max(judged, key=lambda each: each.rounding_excess)
    return (
        "in float64 both compute the same",
        f"the {worst.tensor.kind} of {worst.tensor.name} is rounded more coarsely by one of them, by "
        f"{worst.rounding_excess:.0f} times what other kernels and orders of a sum come to",
    )
