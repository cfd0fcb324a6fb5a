"""What a new tensor is for, where that shows when it is made."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.records import Phase, Role
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.results import takes_no_tensor
from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

aten = torch.ops.aten
COPIES = {aten.clone.default, aten._to_copy.default, aten.cat.default}


def is_of_host(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether `func(*args)` copies a tensor of the host, whose values are real."""
    return func is aten._to_copy.default and not isinstance(args[0], FakeTensor)


class Roles:
    """Tells inputs and copies of parameters from what a model makes."""

    def __init__(self, devices: Devices, loop: TrainingLoop) -> None:
        """Where the arguments of an operator come from is looked up in the ledgers of `devices`."""
        self._devices = devices
        self._loop = loop

    def of(self, func: Any, args: tuple[Any, ...]) -> tuple[Role, str]:
        """The role of what `func(*args)` has made, and the module of a parameter that it copies.

        Data that arrives from the host is an input. So is what a script makes outside of any module, from nothing or
        from inputs, as a normalised batch or its noise; a copy of a parameter made there, as an average starts, is
        one more parameter.
        """
        if is_of_host(func, args):
            return Role.INPUT, ""
        if self._loop.is_running or self._loop.phase not in (Phase.INIT, Phase.FORWARD):
            return Role.UNMARKED, ""
        if takes_no_tensor(func):
            return Role.INPUT, ""
        return self._of_sources([leaf for leaf in tree_leaves(args) if isinstance(leaf, FakeTensor)], func)

    def copied_by(self, args: tuple[Any, ...]) -> int:
        """When the block was born that an operator with `args` copies, the first of several; 0 if none is on a card."""
        births = (self._birth_of(leaf) for leaf in tree_leaves(args) if isinstance(leaf, FakeTensor))
        return next((birth.born for birth in births if birth is not None), 0)

    def _of_sources(self, sources: list[FakeTensor], func: Any) -> tuple[Role, str]:
        births = [birth for tensor in sources if (birth := self._birth_of(tensor)) is not None]
        recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in sources)
        if not births or len(births) < len(sources) or recorded:
            return Role.UNMARKED, ""
        if all(birth.role is Role.INPUT for birth in births):
            return Role.INPUT, ""
        if func is not aten.cat.default and func in COPIES and births[0].role is Role.PARAMETER:
            return Role.PARAMETER, births[0].module
        return Role.UNMARKED, ""

    def _birth_of(self, tensor: FakeTensor) -> Birth | None:
        return self._devices.birth_of(tensor) if tensor.layout == torch.strided else None
