"""Which line made parameters need no gradient before the training began, and which made them need one again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.torch_private import FakeTensor


@dataclass(slots=True)
class Frozen:
    """What one line did: how often it froze a parameter, and what of that held until the last step.

    `thawed_bytes` are those that the line `thawed_at` made need a gradient again. `others` tells that the line is about
    tensors that are no parameters.
    """

    num_parameters: int = 0
    frozen_bytes: int = 0
    frozen_matrices: int = 0
    thawed_bytes: int = 0
    thawed_at: str = ""
    others: bool = False


class Freezing:
    """Follows `requires_grad` of the parameters of the run.

    What a loop switches back and forth, as that of a GAN does, is only counted.
    """

    def __init__(self, lines: SourceLines, has_begun: Callable[[], bool]) -> None:
        """No parameter was frozen; `lines` names who does, `has_begun()` tells whether a forward has run."""
        self._lines = lines
        self._has_begun = has_begun
        self._frozen_at = WeakIdKeyDictionary()
        self._thawed_at = WeakIdKeyDictionary()
        self._num_frozen: Counter[str] = Counter()
        self._others: set[str] = set()
        self.by_line: Mapping[str, Frozen] = {}

    def install(self, patches: Patches) -> None:
        """Follow every change of `requires_grad` until `patches` is left."""
        attribute: Any = torch.Tensor.requires_grad
        change_in_place = torch.Tensor.requires_grad_

        def change(tensor: torch.Tensor, value: bool) -> None:
            attribute.__set__(tensor, value)
            self._changed(tensor, needs_grad=value)

        def changed_in_place(tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
            change_in_place(tensor, requires_grad)
            self._changed(tensor, needs_grad=requires_grad)
            return tensor

        patches.set(FakeTensor, "requires_grad", property(attribute.__get__, change))
        patches.set(FakeTensor, "requires_grad_", changed_in_place)

    def _changed(self, tensor: torch.Tensor, *, needs_grad: bool) -> None:
        line = self._lines.current().source
        if not isinstance(tensor, nn.Parameter):
            self._others.add(line)
            return
        self._num_frozen[line] += not needs_grad
        if self._has_begun():
            return
        if not needs_grad:
            self._frozen_at[tensor] = line
            self._thawed_at.pop(tensor, None)
        elif tensor in self._frozen_at:
            self._thawed_at[tensor] = line

    def step_ends(self) -> None:
        """Add up what each line did to the parameters that are there now."""
        found: dict[str, Frozen] = defaultdict(Frozen)
        for parameter, line in self._frozen_at.items():
            row, thawed_at = found[line], self._thawed_at.get(parameter)
            if thawed_at is None:
                row.frozen_bytes += parameter.nbytes
                row.frozen_matrices += parameter.dim() > 1
            else:
                row.thawed_bytes += parameter.nbytes
                row.thawed_at = thawed_at
        self.by_line = {line: self._counted(line, row) for line, row in found.items()}

    def done_by(self, line: str) -> Frozen:
        """What the line did, as it was when the last step ended."""
        return self.by_line.get(line) or self._counted(line, Frozen())

    def _counted(self, line: str, row: Frozen) -> Frozen:
        row.num_parameters, row.others = self._num_frozen[line], line in self._others
        return row
