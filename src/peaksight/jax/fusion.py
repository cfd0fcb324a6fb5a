"""Which values XLA's GPU compiler never writes to memory, and the kernels that are left."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peaksight.jax.jaxpr_graph import Graph, Node, Value, total_bytes

# Computed element by element: a fusion computes them again in each kernel that reads them.
ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type broadcast_in_dim cbrt ceil clamp "
    "clz complex conj convert_element_type copy copy_p cos cosh digamma div eq eq_to erf erf_inv erfc exp exp2 expm1 "
    "floor ge gt imag integer_pow iota is_finite le le_to lgamma log log1p log2 logistic lt lt_to max min mul mulhi "
    "ne neg nextafter not one_minus_square or population_count pow real reduce_precision rem round rsqrt select_n "
    "shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh "
    "xor".split()
)
# They only move elements: a kernel that reads them can read their operand instead.
MOVES = frozenset(
    "transpose slice dynamic_slice gather rev pad concatenate reshape squeeze expand_dims split stack tile".split()
)
REDUCTIONS = frozenset(
    "reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_prod reduce_xor argmax argmin reduce".split()
)
# They write part of an operand's memory, when nobody reads it afterwards.
UPDATES = frozenset("dynamic_update_slice scatter scatter-add scatter_add scatter-mul scatter-min scatter-max".split())
MAX_READERS = 3
# Steps from a value back to what it is computed of.
DEPTH = 10
# Computed once, unless less is to be read for computing them again.
EXPENSIVE = frozenset("tanh erf erf_inv logistic exp exp2 log log1p expm1 pow sin cos tan atan2 cbrt log2".split())


@dataclass(slots=True, eq=False)
class Kernel:
    """What runs at once: a node with all that is fused into it.

    `reads` and `writes` are buffers, `after` are the values that must be there. With `is_product` the node adds to a
    matrix product as that is written.
    """

    node: Node
    reads: frozenset[Value]
    writes: tuple[Value, ...]
    after: frozenset[Value]
    is_product: bool = False


def kernels_of(graph: Graph) -> list[Kernel]:
    """The kernels of `graph` in the order of the program."""
    fused = fused_values(graph)
    leaves: dict[Value, frozenset[Value]] = {}
    products: set[Value] = set()
    kernels = []
    for node in graph.nodes:
        reads = frozenset().union(*(leaves.get(value) or frozenset({value}) for value in node.reads))
        if node.writes and node.writes[0] in fused:
            leaves[node.writes[0]] = reads
            products.update(node.writes if node.name == "dot_general" else ())
        else:
            is_product = not products.isdisjoint(node.reads)
            kernels.append(Kernel(node, frozenset(v.buffer for v in reads), _new(node), reads, is_product))
    return kernels


def _new(node: Node) -> tuple[Value, ...]:
    return tuple(value for value in node.writes if value.base is None)


def fused_values(graph: Graph) -> set[Value]:
    """The values that every kernel which reads them computes for itself."""
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        for value in set(node.reads):
            readers[value].append(node)
    kept = set(graph.outputs)
    fused: set[Value] = set()
    for node in graph.nodes:
        if (sum_of := _epilogue(node, readers)) is not None and not kept.intersection(node.writes):
            fused.update(node.writes)
            kept.update(sum_of.writes)
    makers = {value: node for node in graph.nodes for value in node.writes}
    for node in reversed(graph.nodes):
        if len(node.writes) != 1 or kept.intersection(node.writes):
            continue
        if _is_fused(node, readers[node.writes[0]]) and not _is_kept(node, readers[node.writes[0]], makers):
            fused.update(node.writes)
    return fused


def _epilogue(node: Node, readers: Mapping[Value, Sequence[Node]]) -> Node | None:
    """The addition that a matrix product does as it writes, into the memory of the other summand."""
    if node.name != "dot_general" or len(readers[node.writes[0]]) != 1:
        return None
    (reader,) = readers[node.writes[0]]
    is_sum = reader.name in ("add", "add_any") and reader.writes[0].bytes == node.writes[0].bytes
    return reader if is_sum else None


def _is_fused(node: Node, readers: Sequence[Node]) -> bool:
    if node.name not in ELEMENTWISE and node.name not in MOVES:
        return False
    if node.name in ("broadcast_in_dim", "iota"):
        return all(not reader.bodies for reader in readers)
    is_cheap = len(readers) <= MAX_READERS or total_bytes(node.reads) <= total_bytes(node.writes)
    return is_cheap and all(_absorbs(reader) for reader in readers)


def _is_kept(node: Node, readers: Sequence[Node], makers: Mapping[Value, Node]) -> bool:
    """Whether it takes less time to read an expensive value again than to compute it again from what that reads."""
    if node.name not in EXPENSIVE or len(readers) < 2:
        return False
    return total_bytes(_sources(node, makers, DEPTH)) >= total_bytes(node.writes)


def _sources(node: Node, makers: Mapping[Value, Node], depth: int) -> set[Value]:
    """What an element of the node's value is computed of, through what is computed element by element."""
    found: set[Value] = set()
    for value in node.reads:
        maker = makers.get(value)
        if maker is None or depth == 0 or maker.name not in ELEMENTWISE | MOVES:
            found.add(value)
        else:
            found |= _sources(maker, makers, depth - 1)
    return found


def _absorbs(reader: Node) -> bool:
    return reader.name in ELEMENTWISE or reader.name in MOVES or reader.name in REDUCTIONS or reader.name in UPDATES
