"""Integers that arrive from the host, of which a loss may ignore some: how many of them are -100."""

from collections import defaultdict
from typing import Any

import torch

from peaksight.records import LabelFact
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.torch_private import modes_off

# `ignore_index` of torch.nn.functional.cross_entropy, which collators put where no label is.
IGNORED = -100


class LabelsSeen:
    """Rows for each card, of what has such a number in it."""

    def __init__(self) -> None:
        """Nothing arrived yet."""
        self.facts: dict[int, list[LabelFact]] = defaultdict(list)

    def arrived(self, card: int, birth: Birth, tensor: Any) -> None:
        """The `tensor` of the host was copied to the block of `birth` on a card."""
        if tensor.dtype is not torch.int64 or not tensor.dim():
            return
        with modes_off():
            num_ignored = int((tensor == IGNORED).sum())
        if num_ignored:
            self.facts[card].append(LabelFact(born=birth.born, count=tensor.numel(), num_ignored=num_ignored))
