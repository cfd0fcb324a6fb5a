"""The smallest error that would still be caught: errors are put into one block's gradients, and judged again."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from peaksight.records.certificate import Judged, TensorDifference
from peaksight.verification.blocks import block_of
from peaksight.verification.distances import Five, Runs, difference, tensors_of
from peaksight.verification.judging import judge

# Powers of two of the relative errors that are tried.
_SIZES = range(-40, 7)
_SEED = 7


def smallest_caught(
    runs: Runs, differences: Sequence[TensorDifference], is_caught: Callable[[Sequence[Judged]], bool]
) -> dict[str, float | None]:
    """By block, the smallest relative error of its first gradients that `is_caught` in the original's own recording."""
    tensors = {name: five for kind, name, five in tensors_of(runs, 0, 1) if kind == "gradient"}
    others = [each for each in differences if (each.kind, each.step, each.rank) == ("gradient", 1, 0)]
    blocks: dict[str, list[str]] = {}
    for name in tensors:
        blocks.setdefault(block_of(name), []).append(name)
    return {block: _smallest(names, tensors, others, is_caught) for block, names in blocks.items()}


def _smallest(
    names: list[str],
    tensors: dict[str, Five],
    others: list[TensorDifference],
    is_caught: Callable[[Sequence[Judged]], bool],
) -> float | None:
    """By halving: a larger error is no harder to catch."""
    low, high = 0, len(_SIZES)
    while low < high:
        middle = (low + high) // 2
        spoilt = {name: _spoil(tensors[name], 2.0 ** _SIZES[middle]) for name in names}
        judged = judge([_with(each, spoilt) for each in others])
        low, high = (low, middle) if is_caught(judged) else (middle + 1, high)
    return 2.0 ** _SIZES[low] if low < len(_SIZES) else None


def _with(each: TensorDifference, spoilt: dict[str, Five]) -> TensorDifference:
    """The tensor with an error if it has one, else without any difference."""
    if each.name in spoilt:
        return difference(each.kind, each.name, each.step, each.rank, spoilt[each.name])
    return replace(each, bitwise=True, finite=True)


def _spoil(five: Five, size: float) -> Five:
    """The original as changed run, with an error of `size` times its norm in a random direction."""
    generator = torch.Generator().manual_seed(_SEED)
    error = torch.randn(five.original.shape, generator=generator, dtype=torch.float64)
    error *= size * torch.linalg.vector_norm(five.original.double()) / torch.linalg.vector_norm(error)
    exact = five.original_exact
    return replace(
        five,
        changed=(five.original.double() + error).to(five.original.dtype),
        changed_exact=exact + error if exact is not None else None,
    )
