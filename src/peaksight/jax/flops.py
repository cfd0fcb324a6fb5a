"""How much a program multiplies: what recomputation costs, in floating-point operations."""

import math
from collections.abc import Iterable

from jax.extend.core import JaxprEqn

from peaksight.jax.jaxpr_graph import Graph, Node


def flops_of(graph: Graph) -> int:
    """Those of all matrix products and convolutions; a loop counts for each of its steps, a `while` for one."""
    return sum(_of_node(node) for node in graph.nodes)


def _of_node(node: Node) -> int:
    inside = max(map(flops_of, node.bodies), default=0)
    if node.eqn is None:
        return 0
    if node.name == "dot_general":
        return _of_product(node.eqn)
    if node.name == "conv_general_dilated":
        return _of_convolution(node.eqn)
    return inside * int(node.eqn.params["length"]) if node.name == "scan" else inside


def _of_product(eqn: JaxprEqn) -> int:
    (contracted, _), _ = eqn.params["dimension_numbers"]
    return 2 * math.prod(eqn.outvars[0].aval.shape) * _product(eqn.invars[0].aval.shape, contracted)


def _of_convolution(eqn: JaxprEqn) -> int:
    kernel = eqn.invars[1].aval.shape
    num_outputs = kernel[eqn.params["dimension_numbers"].rhs_spec[0]]
    return 2 * math.prod(eqn.outvars[0].aval.shape) * math.prod(kernel) // num_outputs


def _product(shape: tuple[int, ...], axes: Iterable[int]) -> int:
    return math.prod(shape[axis] for axis in axes)
