"""Where the outputs of a program are written: in memory of their own, or in that of donated arguments."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from peaksight.jax.jaxpr_graph import Graph, Node, Value


def place_outputs(graph: Graph, donated: Sequence[bool]) -> dict[Value, Value]:
    """The argument that each output is written into, where it is one; adds the copies that this takes to `graph`.

    JAX pairs donated arguments with outputs of the same shape and type. XLA pairs what is left by its size, and copies
    such an argument first where another equation reads it. What is returned as it came, or twice, is copied.
    """
    _give_each_a_buffer(graph)
    free = [value for value, is_donated in zip(graph.inputs, donated, strict=False) if is_donated]
    homes = _paired(graph.outputs, free, lambda value: (value.tensor, value.bytes))
    rest = [value for value in graph.outputs if value not in homes]
    by_size = _paired(rest, [value for value in free if value not in set(homes.values())], lambda value: value.bytes)
    _copy_first(graph, by_size)
    return homes | by_size


def _give_each_a_buffer(graph: Graph) -> None:
    taken = {*graph.inputs, *graph.constants}
    for number, value in enumerate(graph.outputs):
        if value.buffer in taken:
            graph.outputs[number] = copy = value.copied()
            graph.nodes.append(Node("copy", (value,), (copy,)))
        taken.add(value.buffer)


def _paired(outputs: Sequence[Value], free: Sequence[Value], key: Callable[[Value], object]) -> dict[Value, Value]:
    by_key: dict[object, list[Value]] = defaultdict(list)
    for value in reversed(free):
        by_key[key(value)].append(value)
    return {value: by_key[key(value)].pop() for value in outputs if value.bytes and by_key[key(value)]}


def _copy_first(graph: Graph, homes: dict[Value, Value]) -> None:
    """Let what reads one of the `homes` read a copy, and make all these copies before anything else."""
    read = {value for node in graph.nodes for value in node.reads}
    copies = {value: value.copied() for value in homes.values() if value in read}
    for node in graph.nodes:
        node.reads = tuple(copies.get(value, value) for value in node.reads)
    if copies:
        graph.nodes.insert(0, Node("copies of donated arguments", tuple(copies), tuple(copies.values())))
