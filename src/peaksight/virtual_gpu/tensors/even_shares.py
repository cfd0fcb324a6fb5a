"""Integers that pick one of so many, as the router of a mixture picks experts: each is taken to be picked as often.

Which rows go to which expert is unknown, and an upper bound would give all of them to each. Even shares have the
right sum: what all experts together take does not depend on who takes it.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.notes import note, noted
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

CHOICES = "_peaksight_choices"
ONE_HOT = "_peaksight_one_hot"
SCATTERS = (aten.scatter.value, aten.scatter_.value)
CASTS = (aten._to_copy.default, aten.clone.default)
EXACT = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def choices(tensor: Any) -> int | None:
    """How many values the unknown integers of `tensor` are picks of: from 0 up to that number."""
    count = noted(tensor, CHOICES)
    return count if count is not None and known_value(tensor) is None else None


def share(num_picks: int, num_choices: int, choice: float) -> int:
    """How many of the picks are `choice`; the first ones get the remainder."""
    if not 0 <= choice < num_choices:
        return 0
    return num_picks // num_choices + (choice < num_picks % num_choices)


def shares(tensor: torch.Tensor) -> torch.Tensor | None:
    """How often each choice is among the picks, or None where `tensor` holds none."""
    count = choices(tensor)
    return None if count is None else torch.tensor([share(tensor.numel(), count, each) for each in range(count)])


def is_one_hot_along(tensor: Any, dim: int) -> bool:
    """Whether `tensor` has a one for each pick, and its dimension `dim` is that of the choices."""
    return bool(tensor.dim()) and getattr(tensor, ONE_HOT, None) == tensor.shape[dim]


def remember(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """After `out = func(*args)` on the virtual GPU: what `choices` and `is_one_hot_along` are to say of it."""
    if func in SCATTERS and choices(args[2]) == args[0].shape[args[1]]:
        setattr(out, ONE_HOT, choices(args[2]))
    elif (func.is_view or func in CASTS) and args and hasattr(args[0], ONE_HOT):
        setattr(out, ONE_HOT, getattr(args[0], ONE_HOT))
    elif func is aten.mul.Tensor and (factors := [each for each in args if _is_kept_in(out, each)]):
        setattr(out, ONE_HOT, getattr(factors[0], ONE_HOT))
    else:
        _remember_choices(func, args, kwargs, out)


def _is_kept_in(product: torch.Tensor, factor: Any) -> bool:
    """Whether `factor` has a one for each pick, and each of them is an element of `product`: a mask leaves out some."""
    return hasattr(factor, ONE_HOT) and factor.shape == product.shape


def _remember_choices(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    rule = _RULES.get(func)
    if rule is not None:
        num_choices = rule(args, kwargs)
    elif func.is_view and args and hasattr(args[0], CHOICES):
        num_choices = choices(args[0])
    else:
        return
    results = out if isinstance(out, (list, tuple)) else (out,)
    counts = [num_choices] * len(results)
    if rule is not None and len(results) == 2:
        counts[0] = choices(args[0])  # values of what was sorted or compared
    for tensor, count in zip(results, counts, strict=True):
        if count and isinstance(tensor, FakeTensor) and tensor.dtype in EXACT and known_value(tensor) is None:
            note(tensor, CHOICES, count, view_of=args[0] if func.is_view else None)


def _along(position: int, default: int | None) -> Callable[[tuple[Any, ...], dict[str, Any]], int | None]:
    """The size of the dimension that is the argument at `position`; of all elements, where it is None."""

    def size(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
        tensor, dim = args[0], args[position] if len(args) > position else kwargs.get("dim", default)
        return tensor.numel() if dim is None or not tensor.dim() else tensor.shape[dim]

    return size


def _same(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    """Those of what is selected from: also where it is known to hold every number of a range as often."""
    known = known_value(args[0]) if isinstance(args[0], FakeTensor) and args[0].dtype in EXACT else None
    if known is None:
        return choices(args[0])
    values, counts = known.unique(return_counts=True)
    if len(values) < 2 or not torch.equal(values, torch.arange(len(values)) + values[0]) or values[0] not in (0, 1):
        return None
    return int(values[-1]) + 1 if len(counts.unique()) == 1 else None


def _joined(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    (first, *others) = {choices(tensor) for tensor in args[0]}
    return None if others else first


def _drawn(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    """`randint(high, size)` and `randint(low, high, size)`."""
    low, high = (args[0], args[1]) if isinstance(args[1], int) else (0, args[0])
    return high if low == 0 else None


def _remainder(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    return args[1] if isinstance(args[1], int) and args[1] > 0 else None


_RULES: dict[Any, Callable[[tuple[Any, ...], dict[str, Any]], int | None]] = {
    **dict.fromkeys((aten.topk.default, aten.topk.values), _along(2, -1)),
    **dict.fromkeys((aten.argmax.default, aten.argmax.out, aten.argmin.default), _along(1, None)),
    **dict.fromkeys((aten.max.dim, aten.min.dim, aten.sort.default, aten.argsort.default), _along(1, -1)),
    aten.sort.stable: _along(2, -1),
    **dict.fromkeys((aten.randint.default, aten.randint.low), _drawn),
    aten.remainder.Scalar: _remainder,
    **dict.fromkeys((*CASTS, aten.index.Tensor, aten.index_select.default, aten.gather.default), _same),
    aten.cat.default: _joined,
}
