"""What is known of the elements of a result: their values, or how many are true, distinct or one of a choice."""

from functools import cache
from typing import Any

from peaksight.virtual_gpu.tensors import distinct_values, even_shares, known, true_counts, value_tables, values
from peaksight.virtual_gpu.torch_private import FakeTensor

# Of their results something is known whatever is known of their first argument.
_RULES = {
    *true_counts.WRITES,
    *even_shares.SCATTERS,
    *value_tables.FILLED,
    *value_tables.UNINITIALISED,
    *value_tables.BY_SHAPE_ALONE,
    *value_tables.OVERWRITE,
}


def follow(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
    """After `out = func(*args)` on the virtual GPU: note what is known of `out`, forget what was written over."""
    if _are_unknown_floats(func, args, out):
        return
    count = true_counts.count_result(func, args)
    values.follow(func, args, kwargs, out)
    true_counts.remember(func, args, out, count)
    even_shares.remember(func, args, kwargs, out)
    distinct_values.remember(func, args, out)


def _are_unknown_floats(func: Any, args: tuple[Any, ...], out: Any) -> bool:
    """Whether `out` is what most operators make: floats from a tensor of which nothing is known, as of activations."""
    return (
        type(out) is FakeTensor
        and out.dtype.is_floating_point
        and bool(args)
        and type(args[0]) is FakeTensor
        and not known.is_noted(args[0])
        and not hasattr(args[0], even_shares.ONE_HOT)
        and not _has_rule(func)
    )


@cache
def _has_rule(func: Any) -> bool:
    """Whether `func` may tell of its result, or writes to another argument than its first."""
    return func in _RULES or any(values.written(func))
