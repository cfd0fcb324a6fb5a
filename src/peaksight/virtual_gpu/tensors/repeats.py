"""Values that repeat along a dimension, as masks do for each row or head: kept once, by a stride of zero."""

from functools import cache
from math import prod
from typing import Any

import torch

aten = torch.ops.aten

# What they return is the same however often an element is there.
_REGARDLESS_OF_REPEATS = {
    aten.all.default,
    aten.any.default,
    aten.max.default,
    aten.min.default,
}


@cache
def keeps_repeats(func: Any) -> bool:
    """Whether what `func` returns repeats where each of its arguments does, or is the same without repeats."""
    if func._schema.is_mutable:
        return False
    return func.is_view or torch.Tag.pointwise in func.tags or func in _REGARDLESS_OF_REPEATS


def num_kept(value: torch.Tensor) -> int:
    """The elements of `value` that are in memory, each counted once."""
    return prod(size for size, stride in zip(value.shape, value.stride(), strict=True) if stride)


def once(value: torch.Tensor) -> torch.Tensor:
    """`value` with one element along each dimension in which it repeats."""
    for dim, (size, stride) in enumerate(zip(value.shape, value.stride(), strict=True)):
        if size > 1 and (stride == 0 or _is_uniform(value, dim)):
            value = value.narrow(dim, 0, 1)
    return value


def _is_uniform(value: torch.Tensor, dim: int) -> bool:
    return bool((value == value.narrow(dim, 0, 1)).all())
