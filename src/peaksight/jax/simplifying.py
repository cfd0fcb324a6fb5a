"""What XLA's algebraic simplifier does to a graph that changes its memory."""

from collections.abc import Mapping, Sequence

from jax.extend.core import Literal

from peaksight.jax.jaxpr_graph import Graph, Node, Value
from peaksight.jax.readers import readers_of

SCATTERS = frozenset({"scatter-add", "scatter_add"})
SUMS = frozenset({"add", "add_any"})


def simplify(graph: Graph) -> None:
    """Leave out what changes nothing, and scatter into a summand instead of into zeros that are added to it."""
    _leave_out_nothing(graph)
    makers = {value: node for node in graph.nodes for value in node.writes}
    readers, outputs = readers_of(graph), set(graph.outputs)
    for node in graph.nodes:
        if node.name in SCATTERS and not outputs.intersection(node.writes) and _is_zeros(makers.get(node.reads[0])):
            _scatter_into_summand(graph, node, readers)


def _leave_out_nothing(graph: Graph) -> None:
    """Of frozen parameters, whose update `optax.set_to_zero` makes zero: what comes out is what came in."""
    makers = {value: node for node in graph.nodes for value in node.writes}
    same: dict[Value, Value] = {}
    for node in graph.nodes:
        node.reads = tuple(same.get(value, value) for value in node.reads)
        kept = _kept(node, makers)
        if len(kept) == 1 and kept[0].tensor == node.writes[0].tensor and node.writes[0] not in graph.homes:
            same[node.writes[0]] = kept[0]
    graph.nodes = [node for node in graph.nodes if same.keys().isdisjoint(node.writes)]
    graph.outputs = [same.get(value, value) for value in graph.outputs]


def _kept(node: Node, makers: Mapping[Value, Node]) -> list[Value]:
    """Of a sum what is not zero, of a choice what there is to choose from."""
    if node.name in SUMS:
        return [value for value in node.reads if not _is_zeros(makers.get(value))]
    return list(set(node.reads[1:])) if node.name == "select_n" else []


def _scatter_into_summand(graph: Graph, scatter: Node, readers: Mapping[Value, Sequence[Node]]) -> None:
    (zeros_and_more,) = scatter.writes
    users = readers.get(zeros_and_more, ())
    if len(users) != 1 or users[0].name not in SUMS or set(users[0].reads) == {zeros_and_more}:
        return
    (total,) = users
    summand = next(value for value in total.reads if value is not zeros_and_more)
    if summand.bytes == zeros_and_more.bytes:
        total.name, total.reads = scatter.name, (summand, *scatter.reads[1:])
        graph.nodes = [node for node in graph.nodes if node is not scatter]


def _is_zeros(node: Node | None) -> bool:
    if node is None or node.name != "broadcast_in_dim" or node.eqn is None:
        return False
    (operand,) = node.eqn.invars[:1]
    return isinstance(operand, Literal) and float(operand.val) == 0
