"""What XLA takes to time the algorithms of cuDNN for a program's convolutions, where the card has room for it."""

from collections.abc import Iterator

from peaksight.jax.jaxpr_graph import Graph

# RedzoneAllocator in xla/stream_executor/gpu/redzone_allocator.h: what one algorithm may ask for, and guards of 8 MiB
# on both sides of every buffer.
WORKSPACE_LIMIT_BYTES = 1 << 32
_REDZONES_BYTES = 2 << 23


def timing_bytes(graph: Graph) -> int:
    """The most that timing one convolution of `graph` takes: its buffers and a workspace; 0 without convolutions."""
    largest = max(_convolutions(graph), default=0)
    return largest + WORKSPACE_LIMIT_BYTES + _REDZONES_BYTES if largest else 0


def _convolutions(graph: Graph) -> Iterator[int]:
    """The bytes of the buffers of each, guards included."""
    for node in graph.nodes:
        if node.name == "conv_general_dilated":
            yield sum(value.bytes + _REDZONES_BYTES for value in (*node.reads, *node.writes))
        for body in node.bodies:
            yield from _convolutions(body)
