"""Who reads a value, and what becomes of it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from peaksight.jax.jaxpr_graph import Graph, Node, Value

Readers = Mapping[Value, Sequence[Node]]


def readers_of(graph: Graph) -> Readers:
    """The nodes that read each value of `graph`."""
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in set(node.reads):
            readers[value].append(node)
    return readers


def reached(start: Value, readers: Readers, follows: Callable[[Value], bool]) -> set[Value]:
    """`start` and what is computed of it, through values that `follows` accepts."""
    seen, todo = {start}, [start]
    while todo:
        for node in readers.get(todo.pop(), ()):
            new = {value for value in node.writes if value not in seen and follows(value)}
            seen |= new
            todo.extend(new)
    return seen


def replace_reads(nodes: Iterable[Node], replaced: Mapping[Value, Value]) -> None:
    """Let `nodes` read other values."""
    for node in nodes:
        node.reads = tuple(replaced.get(value, value) for value in node.reads)


def into_bodies(node: Node, values: set[Value]) -> list[tuple[Graph, set[Value]]]:
    """The bodies of `node`, each with those of its inputs that are `values` around it."""
    pairs = []
    for body in node.bodies:
        operands = node.reads[len(node.reads) - len(body.inputs) :]
        pairs.append((body, {inner for outer, inner in zip(operands, body.inputs, strict=True) if outer in values}))
    return pairs
