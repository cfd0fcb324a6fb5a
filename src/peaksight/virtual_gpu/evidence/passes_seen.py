"""The passes of a run: calls of models, and backward passes with the terms that they go through."""

from collections import defaultdict
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from peaksight.records import BackwardFact, CallFact, Phase, TermFact
from peaksight.virtual_gpu.evidence.terms import terms_of
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.training.training_loop import TrainingLoop


class PassesSeen:
    """Rows for each card, whose ticks are its own."""

    def __init__(self, devices: Devices, loop: TrainingLoop, lines: SourceLines) -> None:
        """No pass began yet."""
        self._devices, self._loop, self._lines = devices, loop, lines
        self._call_began: tuple[int, ...] = ()
        self._input_needs_grad = False
        self._rows = 0
        self._called_at = ""
        self._num_backwards = 0
        self.calls: dict[int, list[CallFact]] = defaultdict(list)
        self.backwards: dict[int, list[BackwardFact]] = defaultdict(list)
        self.terms: list[TermFact] = []

    def call_begins(self, inputs: Any) -> None:
        """A module is called with `inputs` from outside of any other."""
        self._call_began = self._ticks()
        tensors = [leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
        self._input_needs_grad = any(tensor.requires_grad for tensor in tensors)
        self._called_at = self._lines.current().source
        self._rows = next((int(tensor.shape[0]) for tensor in tensors if tensor.dim()), 0)

    def call_ends(self, module: nn.Module) -> None:
        """`module` has returned, called from outside of any other; one without parameters is no model.

        Nor is what a checkpoint calls again in a backward pass a call of one.
        """
        if self._loop.phase is Phase.BACKWARD or next(module.parameters(), None) is None:
            return
        is_trained = any(parameter.requires_grad for parameter in module.parameters())
        for device, (first, last) in enumerate(zip(self._call_began, self._ticks(), strict=True)):
            self.calls[device].append(
                CallFact(
                    step=self._loop.step,
                    module=self._loop.modules.path_of(module),
                    training=module.training,
                    recorded=torch.is_grad_enabled() and is_trained,
                    input_needs_grad=self._input_needs_grad,
                    first_tick=first + 1,
                    last_tick=last,
                    rows=self._rows,
                    at=self._called_at,
                )
            )

    def backward_begins(self, roots: Any, *, retains_graph: bool, creates_graph: bool, birth_of: Any) -> None:
        """A backward pass from `roots` begins, asked to keep the graph that it goes through, or to record its own."""
        self._num_backwards += 1
        at = self._lines.current().source
        for device, tick in enumerate(self._ticks()):
            self.backwards[device].append(
                BackwardFact(
                    number=self._num_backwards,
                    step=self._loop.step,
                    tick=tick,
                    at=at,
                    retains_graph=retains_graph,
                    creates_graph=creates_graph,
                )
            )
        terms = terms_of(roots, birth_of)
        if len(terms) > 1:
            self.terms.extend(self._in_order(terms))

    def _in_order(self, terms: list[list[Birth]]) -> list[TermFact]:
        """By the last block of each; what it saves of the time before, as an image that was made earlier, is no part
        of its computation. Where that is most of it, terms were computed side by side, as the log-determinants of a
        flow beside its layers, and none could have had its backward pass before the next began.
        """
        facts: list[TermFact] = []
        before = 0
        for births in sorted(terms, key=lambda births: max(birth.born for birth in births)):
            born = sorted(birth.born for birth in births)
            own = [tick for tick in born if tick > before]
            if 2 * len(own) < len(born):
                return []
            facts.append(TermFact(backward=self._num_backwards, first_born=own[0]))
            before = born[-1]
        return facts

    def _ticks(self) -> tuple[int, ...]:
        return tuple(ledger.tick for ledger in self._devices.ledgers)
