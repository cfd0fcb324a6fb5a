"""Changes to a jitted function as it is called: what is donated, cast before, kept apart, or spread over devices."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, jaxpr_as_fun
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from peaksight.jax.casts import casts_of, dtype_of
from peaksight.jax.compiling import Call
from peaksight.jax.execution import is_floating
from peaksight.jax.inlining import graph_of, is_recomputation, prevents_cse
from peaksight.jax.roles import roles_of
from peaksight.jax.tracing import paths_of
from peaksight.records import Role
from peaksight.records.jax_program import argument_of

# Takes a call and gives it changed, or as it is where the change is not about it.
Edit = Callable[[Call], Call]
MESH_AXIS = "cards"
# Smaller arrays are on every device.
_SMALL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Donate:
    """`donate_argnames=arguments` of the function `program`."""

    program: str
    arguments: tuple[str, ...]

    def __call__(self, call: Call) -> Call:
        """The call with more donated."""
        if call.name != self.program:
            return call
        asked = [argument_of(path) in self.arguments for path in paths_of(call.closed)]
        return replace(call, donated=tuple(a or b for a, b in zip(call.donated, asked, strict=True)))


@dataclass(frozen=True, slots=True)
class CastBefore:
    """What the function `program` reads only through a cast comes in the smaller type, and leaves in it."""

    program: str

    def __call__(self, call: Call) -> Call:
        """The call with smaller arguments."""
        if call.name != self.program:
            return call
        casts = casts_of(graph_of(call.closed))
        types = {value.argument: dtype_of(node.writes[0]) for value, node in casts.items()}
        return replace(call, closed=_with_types(call.closed, types)) if types else call


def _with_types(closed: ClosedJaxpr, types: dict[int, str]) -> ClosedJaxpr:
    """`closed` with arguments of other types; those that it returns as they came keep theirs."""
    function, invars = jaxpr_as_fun(closed), list(closed.jaxpr.invars)
    passed = [invars.index(var) if var in invars else -1 for var in closed.jaxpr.outvars]

    def narrow(*arguments: Any) -> list[Any]:
        given = (arg.astype(aval.dtype) for arg, aval in zip(arguments, closed.in_avals, strict=True))
        returned = zip(passed, function(*given), strict=True)
        return [arguments[place] if place in types else value for place, value in returned]

    shapes = [
        jax.ShapeDtypeStruct(aval.shape, types.get(place, aval.dtype)) for place, aval in enumerate(closed.in_avals)
    ]
    made = jax.make_jaxpr(narrow)(*shapes)
    return made.replace(jaxpr=made.jaxpr.replace(debug_info=closed.jaxpr.debug_info))


@dataclass(frozen=True, slots=True)
class KeepApart:
    """`prevent_cse=True` for every `jax.checkpoint` of the function `program` that is in no loop."""

    program: str

    def __call__(self, call: Call) -> Call:
        """The call of a program whose checkpoints are not undone."""
        if call.name != self.program:
            return call
        jaxpr = _apart(call.closed.jaxpr)
        return call if jaxpr is call.closed.jaxpr else replace(call, closed=call.closed.replace(jaxpr=jaxpr))


def _apart(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr`, itself where nothing in it changes."""
    eqns = [_apart_in(eqn) for eqn in jaxpr.eqns]
    same = all(one is other for one, other in zip(eqns, jaxpr.eqns, strict=True))
    return jaxpr if same else jaxpr.replace(eqns=eqns)


def _apart_in(eqn: JaxprEqn) -> JaxprEqn:
    name, params = eqn.primitive.name, dict(eqn.params)
    if name == "while" or (name == "scan" and params["length"] > params["unroll"]):
        return eqn
    for key, value in params.items():
        if isinstance(value, ClosedJaxpr):
            jaxpr = _apart(value.jaxpr)
            params[key] = value if jaxpr is value.jaxpr else value.replace(jaxpr=jaxpr)
        elif isinstance(value, Jaxpr):
            params[key] = _apart(value)
    if is_recomputation(eqn) and not prevents_cse(eqn):
        before = params["prevent_cse"]
        params["prevent_cse"] = (True,) * len(before) if isinstance(before, tuple) else True
    return eqn if all(params[key] is eqn.params[key] for key in params) else eqn.replace(params=params)


@dataclass(frozen=True, slots=True)
class Spread:
    """Inputs divided by their first axis over `num_devices`; with `state`, all else by its longest axis too."""

    num_devices: int
    state: bool

    def __call__(self, call: Call) -> Call:
        """The call with shardings; as it is where it has a mesh already."""
        if any(isinstance(each, NamedSharding) for each in (*call.shardings, *call.out_shardings)) or _maps(call):
            return call
        mesh = Mesh(jax.devices()[: self.num_devices], (MESH_AXIS,))
        avals, results = call.closed.in_avals, call.closed.out_avals
        is_state = [_kind(aval) in set(map(_kind, results)) for aval in avals]
        roles = roles_of(paths_of(call.closed), is_state, map(is_floating, avals))
        state = {_kind(aval) for aval, role in zip(avals, roles, strict=True) if role is not Role.INPUT}
        given = (
            self._input(aval) if role is Role.INPUT else self._state(aval)
            for aval, role in zip(avals, roles, strict=True)
        )
        returned = (self._state(aval) if not state or _kind(aval) in state else None for aval in results)
        return replace(
            call,
            shardings=tuple(NamedSharding(mesh, spec) for spec in given),
            out_shardings=tuple(spec if spec is None else NamedSharding(mesh, spec) for spec in returned),
        )

    def _input(self, aval: Any) -> PartitionSpec:
        return PartitionSpec(MESH_AXIS) if aval.shape and self._divides(aval.shape[0]) else PartitionSpec()

    def _state(self, aval: Any) -> PartitionSpec:
        axes = [axis for axis, size in enumerate(aval.shape) if self._divides(size)]
        if not self.state or not axes or aval.size * aval.dtype.itemsize <= _SMALL_BYTES:
            return PartitionSpec()
        longest = max(axes, key=lambda axis: aval.shape[axis])
        return PartitionSpec(*(MESH_AXIS if axis == longest else None for axis in range(longest + 1)))

    def _divides(self, size: int) -> bool:
        return size > 0 and size % self.num_devices == 0


def _kind(aval: Any) -> tuple[Any, Any]:
    return aval.shape, aval.dtype


def _maps(call: Call) -> bool:
    """Whether the program says itself what each device does."""
    return any(eqn.primitive.name == "shard_map" for eqn in call.closed.jaxpr.eqns)
