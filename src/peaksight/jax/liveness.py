"""The memory peak of a jitted program from its jaxpr alone: in a second, without XLA and without a plugin."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from jax.extend.core import ClosedJaxpr

from peaksight.jax.donation import place_outputs
from peaksight.jax.inlining import graph_of
from peaksight.jax.jaxpr_graph import Graph, Value, total_bytes
from peaksight.jax.lifetimes import Moment, fullest
from peaksight.jax.path_names import bare_path
from peaksight.jax.source_lines import line_of
from peaksight.records.jax_program import Kind, LiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """The peak of one call: arguments, constants, outputs that no donated argument holds, and temporaries.

    `aliased_bytes` are those of outputs in the memory of donated arguments. `live` is what is alive at the peak,
    the largest first. `source` and `scope` are of the equation that runs then.
    """

    peak_bytes: int
    argument_bytes: int
    constant_bytes: int
    output_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    live: tuple[LiveValue, ...]
    source: str = ""
    scope: str = ""


def liveness(closed: ClosedJaxpr, *, donated: Sequence[bool] = (), paths: Sequence[str] = ()) -> Liveness:
    """What `closed` needs on one device.

    Args:
        donated: for each argument whether its memory is given away; empty: none is.
        paths: the names of the arguments; empty: those of the traced function.
    """
    return liveness_of(graph_of(closed), donated=donated, paths=paths or argument_paths(closed))


def liveness_of(graph: Graph, *, donated: Sequence[bool] = (), paths: Sequence[str] = ()) -> Liveness:
    """The same of a graph; `graph` gets the copies that its outputs take."""
    homes = place_outputs(graph, donated)
    moment = _fullest_with_outputs(graph, homes)
    held = [*((value, value.bytes) for value in (*graph.inputs, *graph.constants)), *moment.alive]
    live = _live_values([(value, size) for value, size in held if size], graph, paths)
    argument_bytes, constant_bytes = total_bytes(graph.inputs), total_bytes(graph.constants)
    aliased_bytes = total_bytes(homes)
    output_bytes = total_bytes(graph.outputs)
    eqn = moment.node.eqn if moment.node else None
    return Liveness(
        peak_bytes=argument_bytes + constant_bytes + moment.bytes,
        argument_bytes=argument_bytes,
        constant_bytes=constant_bytes,
        output_bytes=output_bytes,
        aliased_bytes=aliased_bytes,
        temporary_bytes=max(0, moment.bytes - output_bytes + aliased_bytes),
        live=tuple(sorted(live, key=lambda each: -each.bytes)),
        source=line_of(eqn) if eqn is not None else "",
        scope=str(eqn.source_info.name_stack) if eqn is not None else "",
    )


def _fullest_with_outputs(graph: Graph, homes: dict[Value, Value]) -> Moment:
    """The fullest moment, when temporaries are in memory of outputs that are still to be written, as far as they fit.

    Each such buffer holds one of them at a time, and only one that is no larger.
    """
    moment = fullest(graph, homes=homes)
    own = [value for value in graph.outputs if value not in homes]
    if not any(value.bytes for value in own):
        return moment
    temporaries = fullest(graph, homes=dict.fromkeys(graph.outputs, graph.outputs[0]))
    rest = _without_room(temporaries.alive, own)
    num_bytes = total_bytes(own) + sum(size for _, size in rest)
    if num_bytes <= moment.bytes:
        return moment
    return Moment(num_bytes, temporaries.node, (*((value, value.bytes) for value in own), *rest))


def _without_room(alive: Sequence[tuple[Value, int]], outputs: Sequence[Value]) -> list[tuple[Value, int]]:
    """Those of `alive` that find no buffer of an output, the largest first looked after."""
    free = sorted(value.bytes for value in outputs)
    rest = []
    for value, size in sorted(alive, key=lambda each: -each[1]):
        place = bisect_left(free, size)
        if place < len(free):
            free.pop(place)
        else:
            rest.append((value, size))
    return rest


def argument_paths(closed: ClosedJaxpr) -> tuple[str, ...]:
    """The names of the arguments as the traced function knows them: `state['params']['w']`."""
    names = closed.jaxpr.debug_info.arg_names or ()
    return tuple(map(bare_path, names)) or ("",) * len(closed.jaxpr.invars)


def _live_values(held: Sequence[tuple[Value, int]], graph: Graph, paths: Sequence[str]) -> list[LiveValue]:
    constants, outputs = set(graph.constants), {value.buffer for value in graph.outputs}

    def kind_of(value: Value) -> Kind:
        if value in constants:
            return Kind.CONSTANT
        if value in outputs:
            return Kind.OUTPUT
        return Kind.ARGUMENT if value.eqn is None and value.argument >= 0 else Kind.TEMPORARY

    return [
        LiveValue(
            bytes=size,
            kind=kind_of(value),
            tensor=value.tensor,
            primitive=value.eqn.primitive.name if value.eqn is not None else "",
            scope=value.scope,
            source=line_of(value.eqn) if value.eqn is not None else "",
            argument=paths[value.argument] if 0 <= value.argument < len(paths) else "",
        )
        for value, size in held
    ]
