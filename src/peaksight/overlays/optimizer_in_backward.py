"""Each parameter is updated as soon as its gradient is complete, which is freed then."""

import functools
import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from peaksight.errors import UnsupportedError
from peaksight.overlays.patches import Patches

# What looks at all gradients between the backward pass and the step.
_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


def apply(patches: Patches, note: Callable[[], None]) -> None:
    """Have every optimizer made until `patches` is left take its steps in the backward pass.

    The script's own calls of `step` find no gradients, and still count for what follows them.

    Raises:
        UnsupportedError: the script adds up gradients of several backward passes, clips them or scales its loss;
            raised in its own call.
    """
    stepping = _Stepping(patches, note)
    add: Any = Optimizer.add_param_group

    def add_param_group(optimizer: Optimizer, param_group: dict[str, Any]) -> None:
        add(optimizer, param_group)
        stepping.watch(optimizer, len(optimizer.param_groups) - 1)

    patches.set(Optimizer, "add_param_group", add_param_group)
    patches.callback(register_optimizer_step_post_hook(stepping.ended).remove)
    for name in _CLIPPING:
        patches.set_wherever_imported(name, _refused(name), of=nn.utils.clip_grad, also_as=name)
    step: Any = torch.amp.GradScaler.step
    patches.set(torch.amp.GradScaler, "step", _without_scale(step))


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise _unsupported(f"the script calls {name}, for which all gradients have to be there")

    return refuse


def _without_scale(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a scaler that is not enabled is that of the optimizer."""
    refuse = _refused("GradScaler.step")

    @functools.wraps(step)
    def stepped(scaler: torch.amp.GradScaler, *args: Any, **kwargs: Any) -> Any:
        return (refuse if scaler.is_enabled() else step)(scaler, *args, **kwargs)

    return stepped


class _Stepping:
    """Steps one parameter at a time, each once between two steps of its optimizer."""

    def __init__(self, patches: Patches, note: Callable[[], None]) -> None:
        self._patches, self._note = patches, note
        self._stepped: WeakKeyDictionary[Optimizer, set[int]] = WeakKeyDictionary()

    def watch(self, optimizer: Optimizer, index: int) -> None:
        """Step the parameters of the group with this index when they have their gradients."""
        watched = ref(optimizer)

        def complete(parameter: torch.Tensor) -> None:
            known = watched()
            if known is not None:
                self._step(known, index, parameter)

        for parameter in optimizer.param_groups[index]["params"]:
            if parameter.requires_grad and parameter.is_leaf:
                self._patches.callback(parameter.register_post_accumulate_grad_hook(complete).remove)

    def ended(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """The script's own step: the next backward pass may update again."""
        self._stepped.pop(optimizer, None)

    def _step(self, optimizer: Optimizer, index: int, parameter: torch.Tensor) -> None:
        stepped = self._stepped.setdefault(optimizer, set())
        if id(parameter) in stepped:
            raise _unsupported("the script adds up the gradients of several backward passes")
        stepped.add(id(parameter))
        groups = optimizer.param_groups
        optimizer.param_groups = [{**groups[index], "params": [parameter]}]
        try:
            with torch.no_grad():
                inspect.unwrap(type(optimizer).step)(optimizer)
        finally:
            optimizer.param_groups = groups
        parameter.grad = None
        self._note()


def _unsupported(why: str) -> UnsupportedError:
    return UnsupportedError(
        f"Can't step in the backward pass: {why}. Leave optimizer-in-backward out of the plan.", slug="plan-gradients"
    )
