"""Leaves out of a graph what nobody reads, in the bodies of loops too."""

from collections.abc import Iterable, Sequence

from peaksight.jax.jaxpr_graph import Graph, Node, Value


def prune(graph: Graph) -> None:
    """Leave out nodes whose results nobody reads, but for those with effects, and what loops compute for nobody."""
    wanted = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if wanted.isdisjoint(node.writes) and not (node.eqn is not None and node.eqn.effects):
            continue
        if len(node.bodies) == 1 and node.name in ("scan", "while"):
            _prune_loop(node, wanted)
        wanted.update(node.reads)
        kept.append(node)
    graph.nodes = kept[::-1]


def _prune_loop(node: Node, wanted: set[Value]) -> None:
    """Drop the results of a loop that are not `wanted`, and then the operands that its body reads no more."""
    (body,) = node.bodies
    needed = {number for number, value in enumerate(node.writes) if value in wanted}
    carried = {number: home for number, output in enumerate(body.outputs) if (home := body.homes.get(output))}
    while True:
        read = _read_by(body, [body.outputs[number] for number in needed])
        more = {number for number, home in carried.items() if home in read} - needed
        if not more:
            break
        needed |= more
    body.outputs = _at(body.outputs, needed)
    node.writes = tuple(_at(node.writes, needed))
    prune(body)
    read = _read_by(body, body.outputs) | {home for output in body.outputs if (home := body.homes.get(output))}
    outputs = set(body.outputs)
    body.homes = {output: home for output, home in body.homes.items() if output in outputs}
    operands = {number for number, value in enumerate(body.inputs) if value in read}
    first = len(node.reads) - len(body.inputs)
    node.reads = (*node.reads[:first], *_at(node.reads[first:], operands))
    body.inputs = _at(body.inputs, operands)


def _read_by(body: Graph, outputs: Iterable[Value]) -> set[Value]:
    """Everything that is read on the way to `outputs`, them included."""
    wanted = set(outputs)
    for node in reversed(body.nodes):
        if not wanted.isdisjoint(node.writes) or (node.eqn is not None and node.eqn.effects):
            wanted.update(node.reads)
    return wanted


def _at(values: Sequence[Value], numbers: set[int]) -> list[Value]:
    return [value for number, value in enumerate(values) if number in numbers]
