"""Models whose weights are bfloat16, and with them gradients, activations and the state of the optimizer."""

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from peaksight.overlays.patches import Patches


def apply(patches: Patches, note: Callable[[], None]) -> None:
    """Make each model bfloat16 when it is first called from outside of any module, until `patches` is left.

    As `model.to(torch.bfloat16)` does, parameters stay the same objects for an optimizer that has them. Tensors of
    float32 that a model is called with are cast, what it returns is not.
    """
    made: WeakSet[nn.Module] = WeakSet()
    call = nn.Module.__call__
    is_inside = False

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal is_inside
        if is_inside or next(module.parameters(), None) is None:
            return call(module, *args, **kwargs)
        if module not in made:
            made.add(module)
            if any(parameter.dtype == torch.float32 for parameter in module.parameters()):
                module.to(torch.bfloat16)
                note()
        is_inside = True
        try:
            return call(module, *_cast(args), **_cast(kwargs))
        finally:
            is_inside = False

    patches.set(nn.Module, "__call__", called)


def _cast(value: Any) -> Any:
    """`value` with tensors of float32, in tuples, lists and dicts too, as bfloat16."""
    if isinstance(value, torch.Tensor):
        return value.to(torch.bfloat16) if value.dtype == torch.float32 else value
    if type(value) in (tuple, list):
        return type(value)(map(_cast, value))
    if type(value) is dict:
        return {key: _cast(each) for key, each in value.items()}
    return value
