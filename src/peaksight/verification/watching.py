"""Has torch tell the recorder what happens: models called, losses, backward passes, optimizer and scheduler steps."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from peaksight.verification.recorder import Recorder
from peaksight.verification.torch_private import in_backward

_CLASS_LOSSES = ("cross_entropy", "nll_loss")
_VALUE_LOSSES = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
)
_DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")


def watch(recorder: Recorder) -> None:
    """Patch torch in this process, for good; before the script imports anything."""
    _watch_models(recorder)
    _watch_losses(recorder)
    _watch_backward(recorder)
    _watch_optimizers(recorder)
    _watch_mechanisms(recorder)


def _wrap(owner: Any, name: str, before: Callable[..., None]) -> None:
    """Call `before` with the arguments of `owner.name` each time it is called."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def watched(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return real(*args, **kwargs)

    setattr(owner, name, watched)


def _trains(recorder: Recorder) -> bool:
    """Whether what happens is part of a forward pass of training, and not of its recomputation."""
    return torch.is_grad_enabled() and not in_backward() and not recorder.is_elsewhere


def _watch_models(recorder: Recorder) -> None:
    real = nn.Module.__call__
    inside = False

    def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or not _trains(recorder) or next(module.parameters(), None) is None:
            return real(module, *args, **kwargs)
        recorder.goes_on()
        recorder.window.batches.add(args, kwargs)
        inside = True
        try:
            return real(module, *args, **kwargs)
        finally:
            inside = False

    nn.Module.__call__ = call  # type: ignore[method-assign]


def _watch_losses(recorder: Recorder) -> None:
    def classes(input: Tensor, target: Tensor, *args: Any, ignore_index: int = -100, **kwargs: Any) -> None:
        if _trains(recorder):
            recorder.goes_on()
            of_class = not target.is_floating_point()
            recorder.window.tokens.append(int((target != ignore_index).sum()) if of_class else target.shape[0])

    def values(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> None:
        if _trains(recorder):
            recorder.goes_on()
            recorder.window.tokens.append(target.numel())

    for name in _CLASS_LOSSES:
        _wrap(F, name, classes)
    for name in _VALUE_LOSSES:
        _wrap(F, name, values)


def _watch_backward(recorder: Recorder) -> None:
    real = torch.autograd.backward

    @functools.wraps(real)
    def backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        if in_backward() or recorder.is_elsewhere:
            return real(tensors, grad_tensors, *args, **kwargs)
        recorder.goes_on()
        losses = _values(tensors, grad_tensors)
        real(tensors, grad_tensors, *args, **kwargs)
        recorder.backward_done(losses)

    torch.autograd.backward = backward


def _values(tensors: Any, weights: Any) -> list[float]:
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    weights = [weights] if isinstance(weights, Tensor) or weights is None else list(weights)
    weights += [None] * (len(tensors) - len(weights))
    with torch.no_grad():
        return [
            float((each if weight is None else each * weight).double().sum())
            for each, weight in zip(tensors, weights, strict=True)
        ]


def _watch_optimizers(recorder: Recorder) -> None:
    real = Optimizer.__init__

    @functools.wraps(real)
    def make(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        real(optimizer, *args, **kwargs)
        recorder.optimizer_made(optimizer)

    Optimizer.__init__ = make  # type: ignore[method-assign,assignment]
    register_optimizer_step_pre_hook(recorder.before_step)
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: recorder.after_step(optimizer))
    for scheduler in (LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        _wrap_scheduler(scheduler, recorder)


def _wrap_scheduler(kind: type, recorder: Recorder) -> None:
    real = kind.__init__  # type: ignore[misc]

    @functools.wraps(real)
    def make(scheduler: Any, *args: Any, **kwargs: Any) -> None:
        real(scheduler, *args, **kwargs)
        recorder.scheduler_made(scheduler)

    kind.__init__ = make  # type: ignore[misc]


def _watch_mechanisms(recorder: Recorder) -> None:
    """Checkpointing, dropout, clipping, autocast, and data parallelism, which needs its float64 before it starts."""

    def region(*args: Any, **kwargs: Any) -> None:
        if _trains(recorder):
            recorder.goes_on()
            recorder.window.checkpointed_regions += 1

    def mask(input: Tensor, p: float = 0.5, training: bool = True, *args: Any, **kwargs: Any) -> None:
        if training and p and _trains(recorder):
            recorder.window.dropout[round(p, 6)] += input.numel()

    def attention(
        query: Tensor, key: Tensor, value: Tensor, mask: Any = None, dropout_p: float = 0.0, *_: Any, **k: Any
    ) -> None:
        if dropout_p and _trains(recorder):
            recorder.window.dropout[round(dropout_p, 6)] += query.numel() // query.shape[-1] * key.shape[-2]

    def bernoulli(tensor: Tensor, p: Any = 0.5, *args: Any, **kwargs: Any) -> None:
        if isinstance(p, float) and _trains(recorder):
            recorder.window.dropout[round(1 - p, 6)] += tensor.numel()

    def clip(*args: Any, **kwargs: Any) -> None:
        recorder.window.clippings += 1

    def cast(context: Any, *args: Any) -> None:
        if context._enabled and _trains(recorder):
            recorder.window.autocast = str(context.fast_dtype).removeprefix("torch.")

    def parallel(wrapper: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
        recorder.start.before_wrapping(module)

    _wrap(torch.utils.checkpoint, "checkpoint", region)
    for name in _DROPOUTS:
        _wrap(F, name, mask)
    _wrap(Tensor, "bernoulli_", bernoulli)
    _wrap(F, "scaled_dot_product_attention", attention)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        _wrap(nn.utils, name, clip)
    _wrap(torch.amp.autocast_mode.autocast, "__enter__", cast)
    _wrap(nn.parallel.DistributedDataParallel, "__init__", parallel)
