"""The loops of a forward pass, and what they keep for the backward pass."""

from collections import Counter
from dataclasses import dataclass

from peaksight.jax.gradients import is_backward
from peaksight.jax.jaxpr_graph import Graph, Node, Value
from peaksight.jax.readers import Readers, readers_of
from peaksight.jax.source_lines import line_of
from peaksight.records.jax_program import ScanFact


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop of `length` steps, and the stacks that a backward pass reads."""

    node: Node
    length: int
    residuals: tuple[Value, ...]
    is_checkpointed: bool

    @property
    def carry(self) -> list[Value]:
        """What goes from one step to the next."""
        return list(self.node.bodies[0].homes.values())

    def beside_carry(self) -> list[Value]:
        """The residuals that recomputing from the carry spares: one stack of each carry has to stay."""
        kept = Counter(value.bytes * self.length for value in self.carry)
        spared = []
        for value in self.residuals:
            if kept[value.bytes] > 0:
                kept[value.bytes] -= 1
            else:
                spared.append(value)
        return spared

    def fact(self) -> ScanFact:
        """The same for rules."""
        return ScanFact(
            at=line_of(self.node.eqn) if self.node.eqn is not None else "",
            scope=self.node.writes[0].scope,
            length=self.length,
            residuals=tuple((value.tensor, value.bytes) for value in self.residuals),
            carry_bytes=sum(value.bytes for value in self.carry),
            is_checkpointed=self.is_checkpointed,
        )


def scans_of(graph: Graph) -> list[Scan]:
    """Every scan of the forward pass, in the order of the program."""
    readers = readers_of(graph)
    scans = [node for node in graph.nodes if node.name == "scan" and node.writes]
    return [_scan(node, readers) for node in scans if "transpose(" not in node.writes[0].scope]


def _scan(node: Node, readers: Readers) -> Scan:
    carried = {
        write
        for write, output in zip(node.writes, node.bodies[0].outputs, strict=True)
        if output in node.bodies[0].homes
    }
    stacks = [value for value in node.writes if value not in carried and _is_read_backward(value, readers)]
    loops = {reader for value in stacks for reader in readers[value] if reader.bodies}
    return Scan(
        node=node,
        length=node.eqn.params["length"] if node.eqn is not None else 1,
        residuals=tuple(sorted(stacks, key=lambda value: -value.bytes)),
        is_checkpointed=any(_recomputes(body) for loop in loops for body in loop.bodies),
    )


def _is_read_backward(value: Value, readers: Readers) -> bool:
    return any(reader.writes and is_backward(reader.writes[0].scope) for reader in readers.get(value, ()))


def _recomputes(body: Graph) -> bool:
    return any("rematted_computation" in value.scope for node in body.nodes for value in node.writes)
