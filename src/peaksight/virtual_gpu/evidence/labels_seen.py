"""Labels of which a loss ignores some: how many, where integers arrive from the host, and where a loss reads them."""

from collections import defaultdict
from typing import Any

import torch

from peaksight.records import LabelFact
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.torch_private import modes_off

aten = torch.ops.aten

# `ignore_index` of torch.nn.functional.cross_entropy, which collators put where no label is.
IGNORED = -100
# Their second argument are the labels, their fifth is `ignore_index`.
LOSSES = {aten.nll_loss_forward.default, aten.nll_loss2d_forward.default}


class LabelsSeen:
    """Rows for each card, of what has such a number in it."""

    def __init__(self) -> None:
        """Nothing arrived yet."""
        self.facts: dict[int, list[LabelFact]] = defaultdict(list)

    def arrived(self, card: int, birth: Birth, tensor: Any) -> None:
        """The `tensor` of the host was copied to the block of `birth` on a card."""
        if tensor.dtype is not torch.int64 or not tensor.dim():
            return
        self._note(card, birth, tensor, IGNORED)

    def read(self, card: int, birth: Birth, args: tuple[Any, ...]) -> None:
        """One of `LOSSES` made the block of `birth` of `args`: its labels may be put together on the card."""
        labels = known_value(args[1])
        if labels is not None:
            self._note(card, birth, labels, args[4])

    def _note(self, card: int, birth: Birth, labels: torch.Tensor, ignored: int) -> None:
        with modes_off():
            num_ignored = int((labels == ignored).sum())
        fact = LabelFact(born=birth.born, count=labels.numel(), num_ignored=num_ignored)
        if num_ignored:
            self.facts[card].append(fact)
