"""Values on the virtual GPU: what derives from real data keeps its values, the rest gets stand-ins.

Masks, lengths and labels decide shapes and branches (`mask.all()`, `lengths.max().item()`, `nonzero`), so small
integer and boolean tensors carry their real values through device operations, on the CPU and beside the fake
ones. So do random numbers, by chance (`drawing`). Values that depend on parameters or activations cannot be known:
reading one gives a stand-in (1.0, 1, False), which is noted.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from peaksight.virtual_gpu.tensors.drawing import DECIDING, Draws, draws
from peaksight.virtual_gpu.tensors.mapped import untouched
from peaksight.virtual_gpu.tensors.value_tables import (
    ALL,
    BY_SHAPE_ALONE,
    FILLED,
    KEEPS_FOUND_INF,
    ON_FINITE_VALUES,
    OVERWRITE,
    UNINITIALISED,
)
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

MAX_EXACT_NUMEL = 1 << 20
MAX_FLOAT_NUMEL = 1 << 16
STAND_INS = {"floating": 1.0, "integer": 1, "bool": False}


def stand_in(dtype: torch.dtype) -> float | int | bool:
    """The value given for one that cannot be known."""
    if dtype == torch.bool:
        return STAND_INS["bool"]
    return STAND_INS["floating" if dtype.is_floating_point or dtype.is_complex else "integer"]


def known_value(tensor: Any) -> torch.Tensor | None:
    """The real values of `tensor`, on the CPU, or None."""
    if not isinstance(tensor, FakeTensor):
        return tensor if tensor.device.type == "cpu" else None
    value, family = getattr(tensor, "_peaksight_value", (None, None))
    return value if family is not None and family.valid else None


def is_by_chance(tensor: Any) -> bool:
    """Whether the known values of `tensor` come from random numbers of the card, which would be others there."""
    family = family_of(tensor)
    return family is not None and family.valid and family.by_chance


def decides_on_host(tensor: torch.Tensor) -> bool:
    """Whether a copy on the host may decide lengths and branches there: a number, or no floats."""
    return tensor.numel() == 1 or not tensor.dtype.is_floating_point


def host_copy(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A real CPU tensor for `tensor.to("cpu", dtype)`: its values if known, or stand-ins that cost nothing unread."""
    value, dtype = known_value(tensor), dtype or tensor.dtype
    if value is not None:
        return value.to(dtype, copy=True)
    if tensor.numel() <= MAX_FLOAT_NUMEL:
        return torch.full(tensor.shape, stand_in(tensor.dtype), dtype=dtype)
    return untouched(tensor.shape, dtype)


class Family:
    """Shared by a value and its views: one write that cannot be followed makes all of them unknown.

    One of random numbers makes them `by_chance`.
    """

    __slots__ = ("by_chance", "valid")

    def __init__(self) -> None:
        """As long as nobody writes what cannot be followed."""
        self.valid = True
        self.by_chance = False


# Arguments of an operator that runs on values.
ON_HOST = {"device": torch.device("cpu"), "generator": None}

_computing: list[Any] = []
DRAWS = Draws()


def is_computing() -> bool:
    """Whether an operator runs on values beside the run, in which it was called once."""
    return bool(_computing)


def follow(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """After `out = func(*args)` on the virtual GPU: compute the values of `out` where all inputs have theirs."""
    outputs = out if isinstance(out, (list, tuple)) else (out,)
    if func in ON_FINITE_VALUES:
        assume(out, ON_FINITE_VALUES[func])
    elif func in FILLED and isinstance(out, FakeTensor) and MAX_FLOAT_NUMEL < out.numel() <= MAX_EXACT_NUMEL:
        assume(out, FILLED[func](args))
    elif func in UNINITIALISED and isinstance(out, FakeTensor) and _is_small(out):
        assume(out, 0)
    elif func is not KEEPS_FOUND_INF and all(isinstance(o, FakeTensor) and _is_small(o, func, args) for o in outputs):
        _follow_small(func, args, kwargs, outputs)
        if func in ALL and known_value(out) is None:
            expect(out, True)
    elif func._schema.is_mutable and func is not KEEPS_FOUND_INF:
        _forget_written(func, args, kwargs)


def _follow_small(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Sequence[FakeTensor]) -> None:
    if func in BY_SHAPE_ALONE or (func in OVERWRITE and known_value(args[0]) is None):
        args = (torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:])
    inputs = [*_tensors_in(args), *_tensors_in(kwargs.values())]
    values = _compute(func, args, kwargs, inputs)
    if values is None or [v.shape for v in values] != [o.shape for o in outputs]:
        _forget_written(func, args, kwargs)
        return
    aliases = func.is_view or func._schema.is_mutable
    family = (family_of(inputs[0]) if aliases else None) or Family()
    family.by_chance |= draws(func) or any(map(is_by_chance, inputs))
    for output, value in zip(outputs, values, strict=True):
        attach(output, value.clone() if value is args[0] and not aliases else value, family)


def _compute(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[torch.Tensor]
) -> Sequence[torch.Tensor] | None:
    if draws(func) and func not in DECIDING:
        return None
    if not all(known_value(tensor) is not None and tensor.numel() <= MAX_EXACT_NUMEL for tensor in inputs):
        return None
    try:
        args, kwargs = tree_map(_to_host, (args, kwargs))
        kwargs |= {name: other for name, other in ON_HOST.items() if name in kwargs}
        _computing.append(func)
        try:
            with DRAWS.drawing() if draws(func) else nullcontext():
                result = func(*args, **kwargs)
        finally:
            _computing.pop()
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return None
    result = result if isinstance(result, (list, tuple)) else (result,)
    return result if all(isinstance(r, torch.Tensor) for r in result) else None


def _tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors_in(value)


def _to_host(leaf: Any) -> Any:
    if isinstance(leaf, torch.UntypedStorage):
        return getattr(leaf, "_peaksight_values", leaf)
    return known_value(leaf) if isinstance(leaf, FakeTensor) else leaf


def _is_small(tensor: torch.Tensor, func: Any = None, args: tuple[Any, ...] = ()) -> bool:
    """Whether values of `tensor` are followed; masks keep theirs as floats, for what `interpolate` makes of them."""
    is_mask = (
        func in DECIDING
        or (func is aten._to_copy.default and not _is_float(args[0].dtype))
        or (func is not None and func.is_view and known_value(args[0]) is not None)
    )
    limit = MAX_FLOAT_NUMEL if _is_float(tensor.dtype) and not is_mask else MAX_EXACT_NUMEL
    return tensor.layout == torch.strided and tensor.numel() <= limit


def _is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _forget_written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for position in written(func):
        if position < len(args):
            forget(args[position])
    if "out" in kwargs:
        forget(kwargs["out"])


@cache
def written(func: Any) -> list[int]:
    """The positions of the arguments that `func` writes to."""
    aliases = [argument.alias_info for argument in func._schema.arguments]
    return [position for position, alias in enumerate(aliases) if alias is not None and alias.is_write]


def forget(tensors: Any) -> None:
    """The values of the tensors in `tensors`, and of their views, are not known any more."""
    for tensor in tree_leaves(tensors):
        family = family_of(tensor)
        if family is not None:
            family.valid = False


def family_of(tensor: Any) -> Family | None:
    """What the values of `tensor` and of its views have in common."""
    return getattr(tensor, "_peaksight_value", (None, None))[1]


def is_noted(tensor: Any) -> bool:
    """Whether anything was attached to `tensor`, be it valid or not."""
    return "_peaksight_value" in vars(tensor)


def attach(tensor: Any, value: torch.Tensor | None, family: Family) -> None:
    """`tensor` is `value` as long as `family` is valid."""
    tensor._peaksight_value = (value, family)


def assume(tensor: Any, value: float | int | bool | torch.Tensor) -> Any:
    """`tensor`, which has the values of `value`, or everywhere that one, from now on."""
    everywhere = torch.as_tensor(value, dtype=tensor.dtype, device="cpu").expand(tensor.shape)
    attach(tensor, everywhere.clone() if _is_small(tensor) else everywhere, Family())
    return tensor


def expect(tensor: Any, value: float | bool) -> Any:
    """`tensor`, which is taken to be `value` where what it is cannot be known."""
    tensor._peaksight_expected = value
    return tensor


def read_scalar(tensor: torch.Tensor) -> float | int | bool:
    """The answer to `tensor.item()`, a stand-in where it has to be made up."""
    value = known_value(tensor)
    if value is not None:
        return value.item()
    return getattr(tensor, "_peaksight_expected", stand_in(tensor.dtype))
