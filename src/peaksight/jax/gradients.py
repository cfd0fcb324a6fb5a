"""Gradients in a program: which there are, which nothing uses, and which flow through what is frozen."""

from dataclasses import dataclass
from functools import cache

from jax.extend.core import ClosedJaxpr

from peaksight.jax.casts import dtype_of
from peaksight.jax.fusion import MOVES
from peaksight.jax.inlining import BARRIER, graph_of
from peaksight.jax.jaxpr_graph import Graph, Node, Value
from peaksight.jax.readers import Readers, reached, readers_of, replace_reads

# Below it a value is a scalar, a scale or a bias: nobody's memory.
SMALL_BYTES = 4096
# What makes of a gradient an average, or one of another type.
_SCALINGS = frozenset({"psum", "psum_invariant", "mul", "div", "convert_element_type"})


def is_backward(scope: str) -> bool:
    """Whether an equation of this scope belongs to a backward pass, and repeats nothing of the forward."""
    return "transpose(" in scope and "rematted_computation" not in scope


def scope_of(node: Node) -> str:
    """The name scopes of a node."""
    return node.writes[0].scope if node.writes else ""


def gradients_of(graph: Graph) -> list[Value]:
    """What a backward pass makes and something after it reads."""
    found: dict[Value, None] = {}
    for node in graph.nodes:
        if node.name != BARRIER and not _is_in_backward(node):
            found.update((value, None) for value in node.reads if _is_gradient(value))
    found.update((value, None) for value in graph.outputs if _is_gradient(value))
    return list(found)


@cache
def returned_gradients(closed: ClosedJaxpr) -> frozenset[int]:
    """The places of outputs that are gradients, averaged over cards or batches or not."""
    graph = graph_of(closed)
    makers = {value: node for node in graph.nodes for value in node.writes}

    def source(value: Value) -> Value:
        node = makers.get(value)
        large = [each for each in node.reads if each.bytes > SMALL_BYTES] if node and node.name in _SCALINGS else []
        return source(large[0]) if len(large) == 1 else value

    return frozenset(place for place, value in enumerate(graph.outputs) if _is_gradient(source(value)))


def vain_gradients(graph: Graph) -> list[Value]:
    """Those of which only norms and other small values come: no parameter and no state takes them in."""
    readers, outputs = readers_of(graph), set(graph.outputs)
    return [value for value in gradients_of(graph) if outputs.isdisjoint(_derived(value, readers))]


def drop(graph: Graph, gradients: list[Value]) -> None:
    """Let everything outside of the backward pass do without `gradients`."""
    nothing = dict.fromkeys(gradients, Value(None))
    replace_reads((node for node in graph.nodes if not _is_in_backward(node)), nothing)


@dataclass(frozen=True, slots=True)
class Stop:
    """What a `stop_gradient` before a frozen forward makes zero, the gradients that are `lost`, and its scope."""

    zeros: frozenset[Value]
    lost: tuple[Value, ...]
    scope: str

    def apply(self, graph: Graph) -> None:
        """Let nothing read what is zero."""
        replace_reads(graph.nodes, dict.fromkeys(self.zeros, Value(None)))


def stop_before_frozen(graph: Graph, frozen: set[Value]) -> Stop:
    """What would be, if no gradient went back through what reads `frozen` parameters.

    A loop that makes gradients of parameters too stays as it is.
    """
    weights = _weights(graph, frozen)
    gradients = gradients_of(graph)
    cut = [node for node in graph.nodes if _goes_through(node, weights) and set(gradients).isdisjoint(node.writes)]
    zeros = {value for node in cut for value in node.writes}
    for node in graph.nodes:
        if _is_in_backward(node) and _is_zero(node, zeros):
            zeros.update(node.writes)
    lost = tuple(value for value in gradients if value in zeros)
    return Stop(frozenset(zeros), lost, scope_of(cut[0]) if cut else "")


def updated_by(gradient: Value, graph: Graph) -> set[Value]:
    """The outputs of the gradient's size that are computed of it."""
    return _derived(gradient, readers_of(graph)) & set(graph.outputs)


def _derived(gradient: Value, readers: Readers) -> set[Value]:
    return reached(gradient, readers, lambda value: 4 * value.bytes >= gradient.bytes)


def _is_gradient(value: Value) -> bool:
    return is_backward(value.scope) and value.bytes > SMALL_BYTES and "float" in dtype_of(value)


def _is_in_backward(node: Node) -> bool:
    return is_backward(scope_of(node))


def _weights(graph: Graph, frozen: set[Value]) -> set[Value]:
    """`frozen`, and the same cast, moved or renamed."""
    weights = set(frozen)
    for node in graph.nodes:
        if node.name in MOVES or node.name in ("convert_element_type", BARRIER):
            weights |= {write for read, write in zip(node.reads, node.writes, strict=False) if read in weights}
    return weights


def _goes_through(node: Node, weights: set[Value]) -> bool:
    does_work = node.name in ("dot_general", "conv_general_dilated", "scan", "while", "ragged_dot")
    return does_work and _is_in_backward(node) and not weights.isdisjoint(node.reads)


def _is_zero(node: Node, zeros: set[Value]) -> bool:
    """Whether all that `node` reads of the backward pass is zero."""
    cotangents = [value for value in node.reads if is_backward(value.scope) and value.bytes]
    return bool(cotangents) and all(value in zeros for value in cotangents)
