"""How many elements of a mask can be true where its values are unknown.

The samplers of detection networks draw a given number of unknown positions, set those of a mask, join such masks and
ask where they are true. However large a mask is, no more of it is true than was set.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.virtual_gpu.tensors import picked_ranges
from peaksight.virtual_gpu.tensors.even_shares import choices, is_one_hot_along, share
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.notes import note, noted
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

COUNT = "_peaksight_most_true"
MASKS = (torch.bool, torch.uint8)


def most_true(tensor: torch.Tensor) -> int:
    """The number of elements of `tensor` that aren't zero, or an upper bound of it."""
    value = known_value(tensor)
    if value is not None:
        return int(torch.count_nonzero(value))
    count = noted(tensor, COUNT)
    return tensor.numel() if count is None else min(count, tensor.numel())


def count_result(func: Any, args: tuple[Any, ...]) -> int | None:
    """What `most_true` is to say of `func(*args)`, None without a rule; asked before anything is written."""
    if func in WRITES:
        count = WRITES[func](*args)
        return count if count < args[0].numel() else None
    if (picked := picked_ranges.result(func, args)) is not None:
        return picked.num_true
    if func in SHARES:
        return SHARES[func](*args)
    if func in COMBINATIONS and any(hasattr(each, COUNT) for each in tree_leaves(args[:2])):
        return COMBINATIONS[func](*args)
    is_view = bool(args) and hasattr(args[0], COUNT) and func.is_view
    return most_true(args[0]) if is_view else None


def remember(func: Any, args: tuple[Any, ...], out: Any, count: int | None) -> None:
    """No more than `count` elements of `out` aren't zero, until it or a view of it is written to."""
    if count is not None:
        bound(out, count, view_of=args[0] if func.is_view else None)
    if (picked := picked_ranges.result(func, args)) is not None:
        picked_ranges.remember(out, picked)


def bound(tensor: Any, count: int, *, view_of: Any = None) -> None:
    """No more than `count` elements of `tensor` aren't zero, until it or `view_of`, its base, is written to."""
    if isinstance(tensor, FakeTensor) and known_value(tensor) is None:
        note(tensor, COUNT, count, view_of=view_of)


def _after_index_put(tensor: torch.Tensor, indices: list[torch.Tensor | None], *_: Any) -> int:
    """Those there were, and as many as positions are written; of a mask, its true ones."""
    shapes: list[tuple[int, ...] | None] = []
    for index in indices:
        if index is None or index.dtype not in MASKS:
            shapes.append(None if index is None else tuple(index.shape))
        else:
            shapes += [(most_true(index),)] * index.dim()
    shapes += [None] * (tensor.dim() - len(shapes))
    kept = [size for size, shape in zip(tensor.shape, shapes, strict=True) if shape is None]
    written = torch.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    return most_true(tensor) + prod(written) * prod(kept)


def _after_scatter(tensor: torch.Tensor, dim: int, index: torch.Tensor, *_: Any) -> int:
    return most_true(tensor) + index.numel()


def _in_any(tensors: list[torch.Tensor], *_: Any) -> int:
    return sum(map(most_true, tensors))


def _in_either(tensor: torch.Tensor, other: torch.Tensor) -> int | None:
    return most_true(tensor) + most_true(other) if tensor.shape == other.shape else None


def _in_both(tensor: torch.Tensor, other: torch.Tensor) -> int | None:
    return min(most_true(tensor), most_true(other)) if tensor.shape == other.shape else None


def _in_product(tensor: Any, other: Any) -> int:
    """Where both factors are: no more than where one of them is, as often as it is repeated."""
    factors = [factor for factor in (tensor, other) if isinstance(factor, torch.Tensor) and factor.numel()]
    size = torch.broadcast_shapes(*(factor.shape for factor in factors)).numel()
    return min((most_true(factor) * (size // factor.numel()) for factor in factors), default=0)


def _in_the_same(tensor: torch.Tensor, *_: Any) -> int:
    return most_true(tensor)


def _equal_to(tensor: torch.Tensor, number: float) -> int | None:
    """Those of so many choices that are `number`: an even share of them, which is no bound."""
    num_choices = choices(tensor)
    return None if num_choices is None else share(tensor.numel(), num_choices, number)


def _equal_to_each(tensor: torch.Tensor, other: torch.Tensor) -> int | None:
    """Choices compared with known numbers, each with each; a single unknown one is the first of them."""
    num_choices, numbers = choices(tensor), known_value(other)
    if numbers is None and other.numel() == 1:
        numbers = torch.zeros(1)
    if num_choices is None or numbers is None or numbers.numel() > num_choices:
        return None
    if torch.broadcast_shapes(tensor.shape, other.shape).numel() != tensor.numel() * other.numel():
        return None
    return sum(share(tensor.numel(), num_choices, number) for number in numbers.flatten().tolist())


def _in_slice(tensor: torch.Tensor, dim: int, index: int) -> int:
    """Of a one for each pick, the picks of one choice."""
    if not is_one_hot_along(tensor, dim):
        return most_true(tensor)
    return share(most_true(tensor), tensor.shape[dim], index % tensor.shape[dim])


def _at_places(tensor: torch.Tensor, indices: list[torch.Tensor | None]) -> int | None:
    """Of a one for each pick, the picks of the choices that are asked for."""
    (dim, places), *others = [(dim, places) for dim, places in enumerate(indices) if places is not None]
    if others or places.dtype in MASKS or not is_one_hot_along(tensor, dim):
        return None
    value = known_value(places)
    numbers = [0] * places.numel() if value is None else value.flatten().tolist()
    return sum(_in_slice(tensor, dim, number) for number in numbers)


def _other_than(tensor: torch.Tensor, number: float) -> int | None:
    return most_true(tensor) if number == 0 else None


WRITES: dict[Any, Callable[..., int]] = {
    **dict.fromkeys((aten.index_put_.default, aten.index_put.default), _after_index_put),
    **dict.fromkeys((aten.scatter_.value, aten.scatter.value, aten.scatter_.src, aten.scatter.src), _after_scatter),
}
# Of tensors one of which has a count.
COMBINATIONS: dict[Any, Callable[..., int | None]] = {
    **dict.fromkeys((aten.cat.default, aten.stack.default), _in_any),
    **dict.fromkeys((aten.bitwise_or.Tensor, aten.logical_or.default), _in_either),
    **dict.fromkeys((aten.bitwise_and.Tensor, aten.logical_and.default), _in_both),
    **dict.fromkeys((aten.mul.Tensor, aten.mul_.Tensor), _in_product),
    **dict.fromkeys((aten._to_copy.default, aten.clone.default), _in_the_same),
    aten.index.Tensor: _at_places,
    aten.select.int: _in_slice,
    **dict.fromkeys((aten.ne.Scalar, aten.gt.Scalar), _other_than),
}
# Comparisons of numbers that pick one of so many.
SHARES: dict[Any, Callable[..., int | None]] = {aten.eq.Scalar: _equal_to, aten.eq.Tensor: _equal_to_each}
