"""What autograd saves: a walk through the graph of a backward pass before it begins."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.torch_private import made_number

# A graph of a scan through a long sequence has some hundred thousand nodes; what is beyond is not looked at.
MAX_NODES = 1_000_000

BirthOf = Callable[[torch.Tensor], Birth | None]


class Graphs:
    """Numbers the backward passes, and notes on each block which node saves it and which pass uses it first."""

    def __init__(self, birth_of: BirthOf) -> None:
        """No pass began yet; `birth_of` finds the block of a tensor on a card."""
        self._birth_of = birth_of
        self._num_passes = 0

    def pass_begins(self, roots: Any) -> None:
        """A backward pass from the tensors or edges `roots` begins."""
        self._num_passes += 1
        for node, tensor in saved_below(first_nodes(roots)):
            birth = self._birth_of(tensor)
            if birth is not None and birth.backward in (0, self._num_passes):
                self._note(birth, node)

    def _note(self, birth: Birth, node: Any) -> None:
        """`node` saves `birth`: of several the one that was made first, which runs last."""
        number = made_number(node) + 1
        if not birth.backward or number < birth.node:
            birth.saved_by, birth.backward, birth.node = node.name(), self._num_passes, number

    def look(self, tensor: torch.Tensor, seen: set[Any]) -> list[Birth]:
        """The blocks that the graph behind `tensor` holds, but for nodes in `seen`, to which it adds its own.

        Those that no pass came to yet are noted as saved.
        """
        held = []
        for node, saved in saved_below([tensor.grad_fn], seen):
            birth = self._birth_of(saved)
            if birth is not None:
                birth.saved_by = birth.saved_by or node.name()
                held.append(birth)
        return held


def saved_below(nodes: list[Any], seen: set[Any] | None = None) -> Iterator[tuple[Any, torch.Tensor]]:
    """Each node that `nodes` and the graphs behind them have and `seen` has not, with each tensor that it saves.

    A hook that packs what is saved decides for itself what it keeps: that is not looked into.
    """
    seen = set() if seen is None else seen
    pending = [node for node in dict.fromkeys(nodes) if node is not None and node not in seen]
    seen.update(pending)
    while pending and len(seen) < MAX_NODES:
        node = pending.pop()
        for tensor in saved_by_node(node):
            yield node, tensor
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                pending.append(following)


def first_nodes(roots: Any) -> list[Any]:
    """What the engine is called with: tensors, or the edges of their gradients."""
    return [root.grad_fn if isinstance(root, torch.Tensor) else root[0] for root in roots]


def saved_by_node(node: Any) -> Iterator[torch.Tensor]:
    """The tensors that `node` itself saves."""
    kind: Any = type(node)
    for name in _names_of_saved(kind):
        saved = _read(node, name)
        for each in saved if isinstance(saved, (list, tuple)) else (saved,):
            data = getattr(each, "data", None)
            if isinstance(data, torch.Tensor):
                yield data
    for attribute in getattr(node, "__dict__", {}).values():
        if isinstance(attribute, torch.Tensor):
            yield attribute


def _read(node: Any, name: str) -> Any:
    try:
        return getattr(node, name)
    except RuntimeError:  # of a function of Python's that was gone through backward: it has let go
        return None


@cache
def _names_of_saved(kind: type) -> tuple[str, ...]:
    """The attributes of a kind of node with what it saves, as the variables themselves: reading them unpacks none."""
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
