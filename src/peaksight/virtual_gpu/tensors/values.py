"""Values on the virtual GPU: what derives from real data keeps its values, the rest gets stand-ins.

Masks, lengths and labels decide shapes and branches (`mask.all()`, `lengths.max().item()`, `nonzero`), so small
integer and boolean tensors carry their real values through device operations, on the CPU and beside the fake
ones. So do random numbers, by chance (`drawing`). Values that depend on parameters or activations cannot be known:
reading one gives a stand-in (1.0, 1, False), which is noted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cache
from math import prod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from peaksight.virtual_gpu.tensors.drawing import DECIDING, Draws, draws
from peaksight.virtual_gpu.tensors.followed import (
    MAX_EXACT_NUMEL,
    MAX_FLOAT_NUMEL,
    is_float,
    is_followed,
    is_small,
    makes_data,
)
from peaksight.virtual_gpu.tensors.known import Family, attach, family_of, forget, is_by_chance, known_value
from peaksight.virtual_gpu.tensors.mapped import untouched
from peaksight.virtual_gpu.tensors.repeats import keeps_repeats, once
from peaksight.virtual_gpu.tensors.selecting_branches import asked_to_select
from peaksight.virtual_gpu.tensors.value_tables import (
    ALL,
    ANY,
    BY_SHAPE_ALONE,
    FILLED,
    KEEPS_FOUND_INF,
    ON_FINITE_VALUES,
    OVERWRITE,
    UNINITIALISED,
)
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

STAND_INS = {"floating": 1.0, "integer": 1, "bool": False}


def stand_in(dtype: torch.dtype) -> float | int | bool:
    """The value given for one that cannot be known."""
    if dtype == torch.bool:
        return STAND_INS["bool"]
    return STAND_INS["floating" if dtype.is_floating_point or dtype.is_complex else "integer"]


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
    elif func in UNINITIALISED and isinstance(out, FakeTensor) and is_small(out):
        assume(out, 0)
    elif func is not KEEPS_FOUND_INF and all(isinstance(o, FakeTensor) and is_small(o, func, args) for o in outputs):
        _follow_small(func, args, kwargs, outputs)
        if _is_taken_to_be_true(func) and known_value(out) is None:
            expect(out, True)
    elif isinstance(out, FakeTensor) and keeps_repeats(func):
        _follow_repeats(func, args, kwargs, out)
    elif func._schema.is_mutable and func is not KEEPS_FOUND_INF:
        _forget_written(func, args, kwargs)


def _follow_small(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Sequence[FakeTensor]) -> None:
    if func in BY_SHAPE_ALONE or (func in OVERWRITE and known_value(args[0]) is None):
        args = (torch.empty(args[0].shape, dtype=args[0].dtype), *args[1:])
    if func._schema.is_mutable:
        _keep_each(_written_tensors(func, args, kwargs))
    inputs = [*_tensors_in(args), *_tensors_in(kwargs.values())]
    is_whole = func.is_view or all(tensor.numel() <= MAX_EXACT_NUMEL for tensor in inputs)
    values = _compute(func, args, kwargs, inputs, _to_host if is_whole else _to_host_once)
    if values is None or [v.shape for v in values] != [o.shape for o in outputs]:
        _forget_written(func, args, kwargs)
        return
    aliases = func.is_view or func._schema.is_mutable
    family = (family_of(inputs[0]) if aliases else None) or Family()
    family.by_chance |= draws(func) or any(map(is_by_chance, inputs))
    family.is_data |= makes_data(func, args) and is_float(outputs[0].dtype) and outputs[0].numel() > MAX_FLOAT_NUMEL
    for output, value in zip(outputs, values, strict=True):
        attach(output, value.clone() if value is args[0] and not aliases else value, family)


def _follow_repeats(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: FakeTensor) -> None:
    """Of large tensors those values are followed that repeat, as a mask of attention does for each head and query."""
    inputs = [*_tensors_in(args), *_tensors_in(kwargs.values())]
    if any(known_value(tensor) is None for tensor in inputs):
        return
    if not func.is_view and _num_apart(inputs) > MAX_EXACT_NUMEL:
        return
    values = _compute(func, args, kwargs, inputs, _to_host if func.is_view else _to_host_once)
    if values is not None:
        family = (family_of(inputs[0]) if func.is_view else None) or Family()
        family.repeats = True
        family.by_chance |= any(map(is_by_chance, inputs))
        attach(out, values[0].expand(out.shape), family)


def _is_taken_to_be_true(func: Any) -> bool:
    return func in ALL or (func in ANY and asked_to_select())


def _compute(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inputs: list[torch.Tensor],
    to_host: Callable[[Any], Any],
) -> Sequence[torch.Tensor] | None:
    if draws(func) and func not in DECIDING:
        return None
    if not all(is_followed(tensor, func) for tensor in inputs):
        return None
    try:
        args, kwargs = tree_map(to_host, (args, kwargs))
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


def _num_apart(inputs: list[torch.Tensor]) -> int:
    """How many elements of a pointwise result have to be computed."""
    return prod(torch.broadcast_shapes(*(_to_host_once(tensor).shape for tensor in inputs)))


def _to_host_once(leaf: Any) -> Any:
    value = _to_host(leaf)
    return once(value) if isinstance(value, torch.Tensor) else value


def _to_host(leaf: Any) -> Any:
    if isinstance(leaf, torch.UntypedStorage):
        return getattr(leaf, "_peaksight_values", leaf)
    return known_value(leaf) if isinstance(leaf, FakeTensor) else leaf


def _forget_written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    forget(_written_tensors(func, args, kwargs))


def _written_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [*(args[position] for position in written(func) if position < len(args)), kwargs.get("out")]


def _keep_each(tensors: list[Any]) -> None:
    """Before a write into `tensors`: each of their elements has a place of its own; their bases are forgotten."""
    for tensor in tree_leaves(tensors):
        family = family_of(tensor)
        if family is not None and family.repeats and (value := known_value(tensor)) is not None:
            family.valid = False
            attach(tensor, value.clone(), Family())


@cache
def written(func: Any) -> list[int]:
    """The positions of the arguments that `func` writes to."""
    aliases = [argument.alias_info for argument in func._schema.arguments]
    return [position for position, alias in enumerate(aliases) if alias is not None and alias.is_write]


def assume(tensor: Any, value: float | int | bool | torch.Tensor) -> Any:
    """`tensor`, which has the values of `value`, or everywhere that one, from now on."""
    everywhere = torch.as_tensor(value, dtype=tensor.dtype, device="cpu").expand(tensor.shape)
    repeats = not is_small(tensor)
    attach(tensor, everywhere if repeats else everywhere.clone(), Family(repeats=repeats))
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
