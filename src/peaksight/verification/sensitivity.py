"""The smallest error that would still be caught: errors are put into one block's gradients, and judged again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from peaksight.records.certificate import Judged, TensorDifference, Verdict
from peaksight.verification.blocks import block_of
from peaksight.verification.judging import is_bitwise, judge
from peaksight.verification.measuring import Arrays, Five, measured

# Powers of two of the relative errors that are tried.
_SIZES = range(-40, 7)
_SEED = 7

IsCaught = Callable[[Sequence[Judged]], bool]


def caught_by(verdict: Verdict) -> IsCaught:
    """What an injected error has to do: end the class that the runs have, or would have without it."""
    if verdict == "bitwise":
        return lambda judged: not is_bitwise(each.tensor for each in judged)
    return lambda judged: any(each.excess > 1 for each in judged)


def smallest_caught(
    gradients: Mapping[str, Five[Any]],
    differences: Sequence[TensorDifference],
    is_caught: IsCaught,
    arrays: Arrays[Any],
) -> dict[str, float | None]:
    """By block, the smallest relative error of its first `gradients` that `is_caught` in the original's own run."""
    others = [each for each in differences if (each.kind, each.step, each.rank) == ("gradient", 1, 0)]
    blocks: dict[str, list[str]] = {}
    for name in gradients:
        blocks.setdefault(block_of(name), []).append(name)

    def judged_with(names: Sequence[str], size: float) -> list[Judged]:
        spoilt = {name: _spoil(gradients[name], size, arrays) for name in names}
        return judge([_with(each, spoilt, arrays) for each in others])

    return {
        block: _smallest(lambda size, names=names: is_caught(judged_with(names, size)))  # type: ignore[misc]
        for block, names in blocks.items()
    }


def _smallest(is_caught_at: Callable[[float], bool]) -> float | None:
    """By halving: a larger error is no harder to catch."""
    low, high = 0, len(_SIZES)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_caught_at(2.0 ** _SIZES[middle]) else (middle + 1, high)
    return 2.0 ** _SIZES[low] if low < len(_SIZES) else None


def _with(each: TensorDifference, spoilt: Mapping[str, Five[Any]], arrays: Arrays[Any]) -> TensorDifference:
    """The tensor with an error if it has one, else without any difference."""
    if each.name in spoilt:
        return measured(each.kind, each.name, each.step, each.rank, spoilt[each.name], arrays)
    return replace(each, bitwise=True, finite=True)


def _spoil(five: Five[Any], size: float, arrays: Arrays[Any]) -> Five[Any]:
    """The original as changed run, with an error of `size` times its norm in a random direction."""
    error = arrays.random(five.original, _SEED)
    error = arrays.scaled(error, size * arrays.norm(arrays.wide(five.original)) / arrays.norm(error))
    exact = five.original_exact
    return replace(
        five,
        changed=arrays.sum(five.original, error),
        changed_exact=exact + error if exact is not None else None,
    )
