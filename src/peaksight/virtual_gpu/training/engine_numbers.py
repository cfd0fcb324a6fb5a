"""The order of nodes that a backward pass makes: the engine's thread of a card counts its own, apart from the script's.

Of nodes that are ready the engine runs that with the highest sequence number first, and sequence numbers are counted a
thread (`at::sequence_number`). On a real card a backward pass runs in the thread of its device, so what it records with
`create_graph=True` has lower numbers than the script's thread gave to its latest forwards, and runs after them. Here it
runs in the script's thread, which would have given it the highest.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import made_number, next_sequence_nr, renumber


class EngineNumbers:
    """Counts what backward passes make, and gives it the numbers that it has on a card."""

    def __init__(self) -> None:
        """No pass ran yet."""
        self._start = next_sequence_nr()
        self._num_made = 0
        # For every pass that made nodes: how many the script had made before it, and how many all passes made up to it.
        self._forwards: list[int] = []
        self._made_until: list[int] = []

    @contextmanager
    def within(self, roots: Any, results: list[Any], *, creates_graph: bool) -> Iterator[None]:
        """A pass from the tensors `roots`; `results`, to be filled inside, are the gradients that it returned."""
        first = next_sequence_nr()
        try:
            yield
        finally:
            made = range(first, next_sequence_nr())
            if made:
                self._count(made, [*_gradients_behind(roots), *results] if creates_graph else [])

    def _count(self, made: range, gradients: list[Any]) -> None:
        """A pass that has made nodes, also one that has ended for want of memory."""
        self._forwards.append(made.start - self._start - self._num_made)
        self._made_until.append(self._num_made + len(made))
        self._renumber(made, gradients)
        self._num_made += len(made)

    def _renumber(self, made: range, gradients: list[Any]) -> None:
        for node in list(_made_in(made, gradients)):
            renumber(node, self._among_forwards(self._num_made + made_number(node) - made.start))

    def _among_forwards(self, number: int) -> int:
        """Where `number` of the engine's thread falls among the script's, which have also counted all passes here."""
        place = bisect_right(self._forwards, number)
        return self._start + number + (self._made_until[place - 1] if place else 0)


def _gradients_behind(roots: Any) -> Iterator[torch.Tensor]:
    """What the leaves behind the tensors `roots` have as their gradient."""
    for node in _walk([root.grad_fn for root in roots if isinstance(root, torch.Tensor)], lambda _: True):
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor) and leaf.grad is not None:
            yield leaf.grad


def _made_in(numbers: range, gradients: Iterable[Any]) -> Iterator[Any]:
    """The nodes behind `gradients` that were made with one of `numbers`: older ones lead to none of them."""
    firsts = [gradient.grad_fn for gradient in gradients if isinstance(gradient, torch.Tensor)]
    return _walk(firsts, lambda node: made_number(node) in numbers)


def _walk(firsts: list[Any], wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """Every `wanted` node that is reached from `firsts` through wanted ones, once."""
    seen, ahead = set(), [node for node in firsts if node is not None]
    while ahead:
        node = ahead.pop()
        if node not in seen and wanted(node):
            seen.add(node)
            yield node
            ahead += [following for following, _ in node.next_functions if following is not None]
