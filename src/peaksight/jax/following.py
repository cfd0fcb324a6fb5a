"""Numbers of small arrays that are known on the host, followed through jitted functions: step counters, random keys."""

from collections.abc import Sequence
from math import prod
from typing import Any

import jax
import numpy as np
from jax._src import core
from jax._src.interpreters import partial_eval
from jax.extend.core import ClosedJaxpr

from peaksight.jax.arrays import VirtualArray

# Results up to this size are computed if all that goes in is there: seeds, schedules, index ranges.
SMALL_BYTES = 1 << 20
# Outputs with so few whole numbers are followed through jitted functions, if so few operations make them.
FOLLOWED_SIZE = 64
FOLLOWED_OPERATIONS = 200
LOOPS = ("scan", "while", "cond", "remat2", "checkpoint", "remat", "shard_map", "custom_lin", "closed_call")


def known_of(arg: Any) -> Any:
    """An array with its numbers where they are known."""
    return arg.known if isinstance(arg, VirtualArray) and arg.known is not None else arg


def size_of(aval: Any) -> int:
    """The bytes of an array of this shape and type."""
    return prod(getattr(aval, "shape", ())) * int(getattr(getattr(aval, "dtype", None), "itemsize", 1))


def followed(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """For each output its numbers, where few operations make them of known ones: step counters and random keys."""
    wanted = [_isfollowed(aval) for aval in closed.out_avals]
    values: list[Any] = [None] * len(wanted)
    for place, is_wanted in enumerate(wanted):
        if is_wanted:
            values[place] = _computed(closed, place, args)
    return values


def _computed(closed: ClosedJaxpr, place: int, args: Sequence[Any]) -> Any:
    used = [each == place for each in range(len(closed.out_avals))]
    jaxpr, is_read = partial_eval.dce_jaxpr(closed.jaxpr, used)
    given = [known_of(arg) for arg, reads in zip(args, is_read, strict=True) if reads]
    if len(jaxpr.eqns) > FOLLOWED_OPERATIONS or any(isinstance(each, VirtualArray) for each in given):
        return None
    if any(size_of(core.typeof(each)) > SMALL_BYTES for each in given) or jaxpr.effects:
        return None
    if any(eqn.primitive.name in LOOPS for eqn in jaxpr.eqns):
        return None
    with core.set_current_trace(core.eval_trace):
        return core.eval_jaxpr(jaxpr, closed.consts, *given)[0]


def _isfollowed(aval: Any) -> bool:
    is_number = jax.dtypes.issubdtype(aval.dtype, np.floating)
    return prod(aval.shape) <= FOLLOWED_SIZE and not is_number
