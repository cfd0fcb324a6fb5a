"""What `jax.jit` knows of a traced function."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from peaksight.jax.compiling import Call
from peaksight.jax.liveness import argument_paths
from peaksight.jax.private import pjit_parameters


def call_of(traced: Any, args: Sequence[Any]) -> Call:
    """The call that `jax.jit(f).trace(*args)` stands for."""
    parameters = pjit_parameters(traced)
    closed = parameters["jaxpr"]
    given = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(args)]
    if len(given) != len(closed.in_avals):
        given = [None] * len(closed.in_avals)
    return call_with(parameters, given)


def call_with(parameters: dict[str, Any], given: Sequence[Any]) -> Call:
    """The call of a `pjit` equation with `parameters` on arguments whose shardings are `given` (None: one device)."""
    shardings = tuple(
        given_sharding if (asked := _known(asked_sharding)) is None else asked
        for asked_sharding, given_sharding in zip(parameters["in_shardings"], given, strict=True)
    )
    return Call(
        closed=parameters["jaxpr"],
        name=parameters["name"],
        donated=tuple(parameters["donated_invars"]),
        shardings=shardings,
        out_shardings=tuple(map(_known, parameters["out_shardings"])),
    )


def paths_of(closed: ClosedJaxpr) -> tuple[str, ...]:
    """The names of the arguments: `state.params['w']`."""
    return argument_paths(closed)


def _known(sharding: Any) -> Any:
    return sharding if isinstance(sharding, jax.sharding.Sharding) else None
