"""What `jax.jit` knows of a traced function."""

from collections.abc import Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from peaksight.errors import UnsupportedError
from peaksight.jax.compiler import first_line
from peaksight.jax.compiling import Call
from peaksight.jax.liveness import argument_paths
from peaksight.jax.nnx_names import named_by_path
from peaksight.jax.private import pjit_parameters


def call_of(traced: Any, args: Sequence[Any]) -> Call:
    """The call that `jax.jit(f).trace(*args)` stands for."""
    parameters = pjit_parameters(traced)
    closed = named_by_path(parameters["jaxpr"], traced.in_tree, traced.out_tree)
    given = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(args)]
    if len(given) != len(closed.in_avals):
        given = [None] * len(closed.in_avals)
    return call_with({**parameters, "jaxpr": closed}, given)


def call_with(parameters: dict[str, Any], given: Sequence[Any]) -> Call:
    """The call of a `pjit` equation with `parameters` on arguments whose shardings are `given` (None: one device)."""
    shardings = tuple(
        given_sharding if (asked := _known(asked_sharding)) is None else asked
        for asked_sharding, given_sharding in zip(
            parameters["in_shardings"], _as_mapped(parameters["jaxpr"], given), strict=True
        )
    )
    return Call(
        closed=parameters["jaxpr"],
        name=parameters["name"],
        donated=tuple(parameters["donated_invars"]),
        shardings=shardings,
        out_shardings=tuple(map(_known, parameters["out_shardings"])),
    )


def cannot_trace(fn: Any, error: Exception) -> UnsupportedError:
    """Says so of `fn`, with the first line of the tracer's own `error`."""
    name = getattr(fn, "__name__", type(fn).__name__)
    return UnsupportedError(
        f"Can't trace {name}: {first_line(error)}. Give it arguments with which jax.jit takes it, and name those that "
        "are no arrays in static_argnums.",
        slug="jax-trace",
    )


def paths_of(closed: ClosedJaxpr) -> tuple[str, ...]:
    """The names of the arguments: `state.params['w']`."""
    return argument_paths(closed)


def is_of_jax(closed: ClosedJaxpr) -> bool:
    """Whether the jitted function is one of JAX's own, as `jnp.where`; what `jax.pmap` makes runs the person's."""
    info = closed.jaxpr.debug_info.func_src_info or ""
    runs_another = any(eqn.primitive.name == "shard_map" for eqn in closed.jaxpr.eqns)
    return ("/jax/_src/" in info or "/jax/numpy" in info) and not runs_another


def _as_mapped(closed: ClosedJaxpr, given: Sequence[Any]) -> list[Any]:
    """`given`, with those of one device laid out as the `shard_map` takes them that reads them: so `jax.pmap` does."""
    asked: dict[int, Any] = {}
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.name == "shard_map" and isinstance(mesh := eqn.params["mesh"], jax.sharding.Mesh):
            specs = zip(eqn.invars, eqn.params["in_specs"], strict=True)
            asked |= {id(value): jax.sharding.NamedSharding(mesh, spec) for value, spec in specs}
    return [
        sharding if isinstance(sharding, jax.sharding.NamedSharding) else asked.get(id(value), sharding)
        for value, sharding in zip(closed.jaxpr.invars, given, strict=True)
    ]


def _known(sharding: Any) -> Any:
    return sharding if isinstance(sharding, jax.sharding.Sharding) else None
