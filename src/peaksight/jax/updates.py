"""Which output of a program is the next value of which argument."""

from peaksight.jax.fusion import ELEMENTWISE, MOVES
from peaksight.jax.jaxpr_graph import Graph, Node, Value

_LOOPS = frozenset({"scan", "while"})


def pairs_of(graph: Graph) -> dict[Value, Value]:
    """For each such output its argument: of the same shape and type, and read element by element to make it.

    A gradient of an argument is of its shape too, but no element of it is made of that of the argument alone. What is
    returned as it came is its own next value.
    """
    makers = {value: node for node in graph.nodes for value in node.writes}
    sources = {output: _sources(output, makers) for output in dict.fromkeys(graph.outputs)}
    pairs: dict[Value, Value] = {}
    for output in sorted(sources, key=lambda output: len(sources[output])):
        taken = set(pairs.values())
        own = [each for each in graph.inputs if each in sources[output] and each.tensor == output.tensor and each.bytes]
        if free := [each for each in own if each not in taken]:
            pairs[output] = output if output in free else free[0]
    return pairs


def _sources(output: Value, makers: dict[Value, Node]) -> set[Value]:
    """What `output` is made of, element by element."""
    seen, todo = {output}, [output]
    while todo:
        value = todo.pop()
        node = makers.get(value)
        if node is None:
            continue
        new = {each for each in _element_reads(node, value) if each not in seen}
        seen |= new
        todo.extend(new)
    return seen


def _element_reads(node: Node, value: Value) -> list[Value]:
    if node.name in ELEMENTWISE | MOVES:
        return [each for each in node.reads if 4 * each.bytes >= value.bytes]
    return _before(node, value) if node.name in _LOOPS else []


def _before(node: Node, value: Value) -> list[Value]:
    """What a loop began with, of a value that it carries from one step to the next."""
    (body,) = node.bodies
    home = body.homes.get(body.outputs[node.writes.index(value)])
    first = len(node.reads) - len(body.inputs)
    return [] if home is None else [node.reads[first + body.inputs.index(home)]]
