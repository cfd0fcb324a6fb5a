"""Models and losses that run under autocast, as those of a script that has it around both."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from peaksight.overlays.patches import Patches

# Losses that are called as functions, outside of any module.
_LOSSES = (
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "binary_cross_entropy_with_logits",
)


def apply(patches: Patches, note: Callable[[], None], *, dtype: str = "bfloat16") -> None:
    """Run each module or loss that is called from outside of any module under autocast in `dtype`, until `patches` is
    left.

    Evaluations too. Where the script has autocast itself, its own counts.
    """
    runs_inside = False

    def autocast(device: str) -> AbstractContextManager[Any]:
        if runs_inside or not device or torch.is_autocast_enabled(device):
            return nullcontext()
        note()
        return torch.autocast(device, dtype=getattr(torch, dtype))

    call = nn.Module.__call__

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal runs_inside
        before = runs_inside
        with autocast(_device_of(module, args)):
            runs_inside = True
            try:
                return call(module, *args, **kwargs)
            finally:
                runs_inside = before

    patches.set(nn.Module, "__call__", called)
    for name in _LOSSES:
        _change_loss(patches, name, autocast)


def _change_loss(patches: Patches, name: str, autocast: Callable[[str], AbstractContextManager[Any]]) -> None:
    loss = getattr(functional, name)

    @functools.wraps(loss)
    def called(input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        with autocast(input.device.type):
            return loss(input, *args, **kwargs)

    patches.set_wherever_imported(name, called, of=functional, also_as=name)


def _device_of(module: nn.Module, args: tuple[Any, ...]) -> str:
    """Where its first parameter or argument is, empty if there is none."""
    tensor = next(module.parameters(), next((each for each in args if isinstance(each, torch.Tensor)), None))
    return "" if tensor is None else tensor.device.type
