"""The cross entropy of many rows in chunks: their log-probabilities are never all there at once."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from peaksight.overlays.patches import Patches

_cross_entropy = functional.cross_entropy


def apply(patches: Patches, note: Callable[[], None], *, chunks: int = 16) -> None:
    """Have `torch.nn.functional.cross_entropy`, and what calls it, go through `chunks` of its rows until `patches` is
    left.

    So it does for logits (rows, classes) with the index of a class for each row, without weights or smoothing, as a sum
    or a mean; others stay as they are.
    """
    signature = inspect.signature(_cross_entropy)

    @functools.wraps(_cross_entropy)
    def cross_entropy(*args: Any, **kwargs: Any) -> torch.Tensor:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if not _is_plain(**bound.arguments):
            return _cross_entropy(*args, **kwargs)
        note()
        taken = [bound.arguments[name] for name in ("input", "target", "ignore_index", "reduction")]
        return _ChunkedCrossEntropy.apply(*taken, chunks)

    patches.set_wherever_imported("cross_entropy", cross_entropy, of=functional, also_as="cross_entropy_loss")


def _is_plain(
    *, input: torch.Tensor, target: torch.Tensor, reduction: str, weight: Any, label_smoothing: float, **others: Any
) -> bool:
    is_known = reduction in ("mean", "sum") and others["size_average"] is None and others["reduce"] is None
    has_rows = input.dim() == 2 and target.dim() == 1 and not target.is_floating_point()
    return is_known and has_rows and weight is None and not label_smoothing and input.requires_grad


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Saves the logits only; the backward pass makes their gradient chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, target: torch.Tensor, ignore_index: int, reduction: str, chunks: int
    ) -> torch.Tensor:
        parts = [
            _cross_entropy(rows, labels, ignore_index=ignore_index, reduction="sum")
            for rows, labels in _chunked(logits.detach(), target, chunks)  # a mode of torch comes back here with them
        ]
        count = (target != ignore_index).sum()
        ctx.save_for_backward(logits, target, count)
        ctx.ignore_index, ctx.is_mean, ctx.chunks, ctx.dtype = ignore_index, reduction == "mean", chunks, parts[0].dtype
        loss = torch.stack(parts).sum()
        return loss / count if ctx.is_mean else loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        logits, target, count = ctx.saved_tensors
        scale = grad / count if ctx.is_mean else grad
        gradient = torch.empty_like(logits)
        for (rows, labels), part in zip(_chunked(logits, target, ctx.chunks), gradient.chunk(ctx.chunks), strict=True):
            is_counted = labels != ctx.ignore_index
            index = torch.where(is_counted, labels, 0).unsqueeze(1)
            share = torch.softmax(rows, dim=1, dtype=ctx.dtype)
            share.scatter_add_(1, index, share.new_full((), -1.0).expand_as(index))
            part.copy_(share.mul_((is_counted * scale).to(ctx.dtype).unsqueeze(1)))
        return gradient, None, None, None, None


def _chunked(logits: torch.Tensor, target: torch.Tensor, chunks: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return zip(logits.chunk(chunks), target.chunk(chunks), strict=True)
