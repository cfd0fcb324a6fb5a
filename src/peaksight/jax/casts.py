"""Arguments that a program reads only through a cast to a smaller type, and the program without these casts."""

import re
from collections.abc import Iterable

from peaksight.jax.fusion import MOVES
from peaksight.jax.inlining import BARRIER
from peaksight.jax.jaxpr_graph import Graph, Node, Value
from peaksight.jax.readers import Readers, into_bodies, readers_of

_CAST = "convert_element_type"


def casts_of(graph: Graph) -> dict[Value, Node]:
    """The inputs of `graph` that everything casts to one smaller type before it uses them, each with one such cast."""
    readers = readers_of(graph)
    found = {value: _first_uses(value, graph, readers) for value in graph.inputs if value.tensor.startswith("float")}
    return {value: uses[0] for value, uses in found.items() if uses and _is_cast(value, uses)}


def without_casts(graph: Graph, values: Iterable[Value]) -> None:
    """Make `values`, of those in `casts_of`, come in the type that they are cast to."""
    casts = casts_of(graph)
    for value in list(values):
        dtype = dtype_of(casts[value].writes[0])
        _narrow(graph, {value}, bits_of(value), bits_of(casts[value].writes[0]))
        value.bytes = value.bytes * _bits(dtype) // bits_of(value)
        value.tensor = value.tensor.replace(dtype_of(value), dtype)


def dtype_of(value: Value) -> str:
    """`float32`."""
    return value.tensor.partition("[")[0]


def bits_of(value: Value) -> int:
    """How many bits an element has."""
    return _bits(dtype_of(value))


def _bits(dtype: str) -> int:
    found = re.search(r"\d+", dtype)
    return int(found[0]) if found else 8


def _is_cast(value: Value, uses: list[Node]) -> bool:
    dtypes = {dtype_of(node.writes[0]) for node in uses if node.name == _CAST}
    is_all = all(node.name == _CAST for node in uses)
    return is_all and len(dtypes) == 1 and "float" in dtypes.copy().pop() and _bits(dtypes.pop()) < bits_of(value)


def _first_uses(value: Value, graph: Graph, readers: Readers) -> list[Node]:
    """The nodes that use `value`, through what only moves it, and into the bodies of loops and out of them again."""
    uses: list[Node] = []
    for each in _moved(value, readers):
        for node in readers.get(each, ()):
            if node.bodies:
                uses += _uses_in(node, each, graph, readers)
            elif not _moves(node):
                uses.append(node)
    return uses


def _uses_in(node: Node, value: Value, graph: Graph, readers: Readers) -> list[Node]:
    uses: list[Node] = []
    for body, inner in into_bodies(node, {value}):
        of_body = readers_of(body)
        same = {moved for each in inner for moved in _moved(each, of_body)}
        uses += [use for each in inner for use in _first_uses(each, body, of_body)]
        passed_on = (out for out, each in zip(node.writes, body.outputs, strict=False) if each in same)
        uses += [use for each in passed_on for use in _first_uses(each, graph, readers)]
    return uses


def _moved(value: Value, readers: Readers) -> list[Value]:
    """`value` and what only moves it."""
    found = [value]
    for each in found:
        for node in readers.get(each, ()):
            if _moves(node):
                found += [node.writes[node.reads.index(each)]] if node.name == BARRIER else node.writes
    return found


def _moves(node: Node) -> bool:
    return not node.bodies and (node.name in MOVES or node.name == BARRIER)


def _narrow(graph: Graph, values: set[Value], bits: int, new_bits: int) -> None:
    for node in graph.nodes:
        if values.isdisjoint(node.reads):
            continue
        for body, inner in into_bodies(node, values):
            _narrow(body, inner, bits, new_bits)
        if node.name == _CAST:
            node.writes[0].base = node.reads[0]
        elif not node.bodies:
            moved = {write for read, write in zip(node.reads, node.writes, strict=False) if read in values}
            for value in moved:
                value.bytes = value.bytes * new_bits // bits
            values |= moved
