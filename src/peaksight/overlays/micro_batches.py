"""Batches of a plain training loop in parts, whose gradients are accumulated: the loop itself stays as it is.

Of each batch every part is one round of the loop. Losses are scaled by the part's share of the samples; optimizers,
their schedulers, gradient scalers and clipping act in the round of the last part, and nothing zeroes gradients between.
"""

import functools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import nn
from torch.amp import GradScaler
from torch.nn.utils import clip_grad
from torch.optim import Optimizer, lr_scheduler

from peaksight.overlays import parts_of_batches
from peaksight.overlays.parts_of_batches import Part
from peaksight.overlays.patches import Patches


def apply(patches: Patches, note: Callable[[], None], *, parts: int, loaders: Collection[int]) -> None:
    """Train on batches of the `loaders` (by the order in which they are first read) in `parts`.

    Until `patches` is left. Loaders of iterable datasets, and such that do not batch, stay as they are.
    """
    window = _Window(note)
    patches.callback(window.begin, None)
    parts_of_batches.install(patches, window.begin)
    parts_of_batches.split_numbered(patches, parts, loaders)
    patches.set_wherever_imported(
        "backward", _scaled(torch.autograd.backward, window), of=torch.autograd, also_as="backward"
    )
    _gate_optimizers(patches, window)
    for scheduler in _schedulers():
        patches.set(scheduler, "step", _gated(vars(scheduler)["step"], window))
    for name in ("unscale_", "update"):
        patches.set(GradScaler, name, _gated(vars(GradScaler)[name], window))
    patches.set(GradScaler, "step", _gated(vars(GradScaler)["step"], window, ends=True))
    for clip in (clip_grad.clip_grad_norm_, clip_grad.clip_grad_value_):
        patches.set_wherever_imported(clip.__name__, _clipping(clip, window), of=clip_grad, also_as=clip.__name__)


class _Window:
    """The part of a batch that the loop is at, None outside of any; what has gradients but not yet stepped is open."""

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note
        self.part: Part | None = None
        self.is_open = False
        self.is_in_backward = False

    def begin(self, part: Part | None) -> None:
        self.part = part
        if part is None:
            self.is_open = False
        elif not part.is_whole:
            self._note()

    @property
    def acts(self) -> bool:
        """Whether what happens once a batch happens now."""
        return self.part is None or self.part.is_last


def _scaled(run: Callable[..., Any], window: _Window) -> Callable[..., Any]:
    """A backward pass from outside of any other one, whose roots count for the share of the part."""

    @functools.wraps(run)
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        if window.part is None or window.is_in_backward:
            return run(tensors, grad_tensors, *args, **kwargs)
        roots = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
        gradients = (grad_tensors,) if isinstance(grad_tensors, torch.Tensor | None) else tuple(grad_tensors)
        gradients = gradients * len(roots) if gradients == (None,) else gradients
        window.is_in_backward = window.is_open = True
        try:
            return run(roots, _shares(roots, gradients, window.part.share), *args, **kwargs)
        finally:
            window.is_in_backward = False

    return backward


def _shares(roots: tuple[torch.Tensor, ...], gradients: tuple[Any, ...], share: float) -> tuple[Any, ...]:
    """Each gradient times `share`; an implicit one, which only a scalar has, is `share` itself."""
    return tuple(
        torch.full_like(root, share) if gradient is None and root.numel() == 1 else gradient and gradient * share
        for root, gradient in zip(roots, gradients, strict=True)
    )


def _gated(method: Callable[..., Any], window: _Window, *, ends: bool = False) -> Callable[..., Any]:
    """`method`, which does nothing until the last part; with `ends`, it uses the gradients up."""

    @functools.wraps(method)
    def gated(*args: Any, **kwargs: Any) -> Any:
        if not window.acts:
            return None
        result = method(*args, **kwargs)
        window.is_open = window.is_open and not ends
        return result

    return gated


def _gate_optimizers(patches: Patches, window: _Window) -> None:
    """Outside of their hooks, so that a step which is not made is none for whoever listens either."""
    hook = Optimizer.profile_hook_step
    patches.set(Optimizer, "profile_hook_step", staticmethod(lambda step: _gated(hook(step), window, ends=True)))
    for optimizer in _subclasses(Optimizer):
        if getattr(vars(optimizer).get("step"), "hooked", False):
            patches.set(optimizer, "step", _gated(vars(optimizer)["step"], window, ends=True))
    for owner in (Optimizer, nn.Module):
        patches.set(owner, "zero_grad", _unless_open(vars(owner)["zero_grad"], window))


def _unless_open(zero_grad: Callable[..., Any], window: _Window) -> Callable[..., Any]:
    @functools.wraps(zero_grad)
    def zero(*args: Any, **kwargs: Any) -> None:
        if not window.is_open:
            zero_grad(*args, **kwargs)

    return zero


def _schedulers() -> Iterator[type]:
    for cls in (lr_scheduler.LRScheduler, *_subclasses(lr_scheduler.LRScheduler)):
        if "step" in vars(cls):
            yield cls


def _subclasses(cls: type) -> Iterator[type]:
    below: list[type] = cls.__subclasses__()
    for each in below:
        yield each
        yield from _subclasses(each)


def _clipping(clip: Callable[..., Any], window: _Window) -> Callable[..., Any]:
    """What the script may print is then the norm of the gradients so far."""

    @functools.wraps(clip)
    def clipped(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if window.acts:
            return clip(parameters, *args, **kwargs)
        held = (parameters,) if isinstance(parameters, torch.Tensor) else tuple(parameters)
        return nn.utils.get_total_norm([each.grad for each in held if each.grad is not None])

    return clipped
