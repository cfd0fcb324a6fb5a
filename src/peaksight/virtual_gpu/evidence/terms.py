"""The terms of a loss that share no graph: each of them could have had a backward pass of its own."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from peaksight.records import Role
from peaksight.virtual_gpu.evidence.graphs import first_nodes, saved_by_node
from peaksight.virtual_gpu.memory.births import Birth

# The gradient of what these join is that of the one times a number, plus that of the other.
_SUMS = {"AddBackward0", "SubBackward0", "StackBackward0", "CatBackward0"}
# Of one tensor these are linear: a factor beside it is no part of a graph.
_LINEAR = {
    *("NegBackward0", "MulBackward0", "DivBackward0", "SumBackward0", "MeanBackward0", "SumBackward1", "MeanBackward1"),
    *("UnsqueezeBackward0", "SqueezeBackward0", "ViewBackward0", "CloneBackward0", "ToCopyBackward0", "AliasBackward0"),
}
_OF_THE_MODEL = {Role.PARAMETER, Role.BUFFER, Role.INPUT}
# More terms are those of a scan.
MAX_TERMS = 4096


def terms_of(roots: Any, birth_of: Callable[[torch.Tensor], Birth | None]) -> list[list[Birth]]:
    """The blocks that each term of a loss saves alone, for terms with graphs apart; fewer than two tell of none.

    A node that two terms share and that saves something joins them: a backward pass through the one frees it for the
    other. Parameters, and what is made of one parameter alone, join nothing.
    """
    heads = _heads(first_nodes(roots))
    if not 2 <= len(heads) <= MAX_TERMS:
        return []
    groups = _Groups()
    for term, head in enumerate(heads):
        groups.add(term, head)
    saved: dict[int, list[Birth]] = defaultdict(list)
    for term, node in groups.members():
        births = (birth_of(tensor) for tensor in saved_by_node(node))
        saved[term].extend(birth for birth in births if birth is not None and birth.role not in _OF_THE_MODEL)
    return [births for births in saved.values() if births]


def _heads(nodes: list[Any]) -> list[Any]:
    """Where the terms begin: what `nodes` are a sum of."""
    heads: list[Any] = []
    pending = [node for node in nodes if node is not None]
    while pending and len(heads) <= MAX_TERMS:
        node = pending.pop()
        following = _following(node)
        if node.name() in _SUMS or (node.name() in _LINEAR and len(following) == 1):
            pending.extend(following)
        else:
            heads.append(node)
    return list(dict.fromkeys(heads))


class _Groups:
    """Nodes by the term that reached them first, and which terms are one."""

    def __init__(self) -> None:
        self._owners: dict[Any, int] = {}
        self._joined: dict[int, int] = {}

    def add(self, term: int, head: Any) -> None:
        """Everything below `head` belongs to `term`, and with it to the terms that it meets."""
        pending = [head]
        while pending:
            node = pending.pop()
            owner = self._owners.setdefault(node, term)
            if owner != term:
                if not _is_of_one_parameter(node):
                    self._joined[self._root(term)] = self._root(owner)
            else:
                pending.extend(n for n in _following(node) if self._owners.get(n) != term)

    def members(self) -> Iterator[tuple[int, Any]]:
        """Each node, with its group."""
        return ((self._root(term), node) for node, term in self._owners.items())

    def _root(self, term: int) -> int:
        while self._joined.get(term, term) != term:
            term = self._joined[term]
        return term


def _is_of_one_parameter(node: Any) -> bool:
    """Whether nothing is saved here, and what is below is a parameter: a cast that autocast keeps, a transposition."""
    return not _following(node) and next(saved_by_node(node), None) is None


def _following(node: Any) -> list[Any]:
    """The nodes below, without the ends of the graph at its leaves."""
    return [n for n, _ in node.next_functions if n is not None and "AccumulateGrad" not in n.name()]
