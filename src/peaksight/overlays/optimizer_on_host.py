"""The state of optimizers waits in host memory between their steps."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from peaksight.overlays.patches import Patches


def apply(patches: Patches, note: Callable[[], None], *, pin_memory: bool = True) -> None:
    """Move each optimizer's state to the host after its step, and back before the next, until `patches` is left.

    What has one number stays, as counts of steps do, and so does what a script puts onto another device than the
    parameter's. Where parameters are on the host themselves, their state is copied all the same.
    """

    def fetch(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        for parameter, state, name in _tensors(optimizer):
            state[name] = state[name].to(parameter.device, non_blocking=pin_memory)

    def put_away(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        for parameter, state, name in _tensors(optimizer):
            if state[name].device == parameter.device:
                state[name] = _on_host(state[name], pin_memory=pin_memory and parameter.is_cuda)
                note()

    patches.callback(register_optimizer_step_pre_hook(fetch).remove)
    patches.callback(register_optimizer_step_post_hook(put_away).remove)


def _tensors(optimizer: Optimizer) -> Iterator[tuple[torch.Tensor, dict[str, Any], str]]:
    """Each tensor of the state that has several numbers: its parameter, and where it is kept."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor) and value.numel() > 1 and isinstance(parameter, torch.Tensor):
                yield parameter, state, name


def _on_host(tensor: torch.Tensor, *, pin_memory: bool) -> torch.Tensor:
    """A copy that is complete once this returns: a script may save it next."""
    packed = torch.empty_like(tensor, device="cpu", pin_memory=pin_memory)
    return packed.copy_(tensor)
