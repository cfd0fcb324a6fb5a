"""`flex_attention` as the Triton kernels that torch.compile makes of it: no scores, one float a row of the queries.

The blocks are those of `flex_attention` and `flex_attention_backward` in torch/_inductor/kernel/flex: the output lies
as the query does; the backward takes one more float a row, the sum of the output times its gradient.

Limitations:
    Not measured. Without torch.compile the card computes all scores, and kernels for few queries sum in parts; neither
    is counted. A tensor that `score_mod` uses gets its gradient where it is a variable of the enclosing function.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.kernels.torch_private import FlexAttentionHOP


def install(patches: Patches, note: Callable[[str], None]) -> None:
    """Answer for the higher-order operator until `patches` is left; `note(slug)` is told of every call."""

    def attend(
        operator: Any,
        query: Any,
        key: Any,
        value: Any,
        score_mod: Callable[..., Any],
        block_mask: tuple[Any, ...],
        scale: float,
        kernel_options: dict[str, Any],
        *buffers: Any,
    ) -> tuple[Any, ...]:
        note("flex-attention")
        out, statistics = _FlexAttention.apply(query, key, value, *_learned(score_mod))
        num_highest = statistics.shape if kernel_options.get("OUTPUT_MAX") else (0,)
        return out, statistics, statistics.new_empty(num_highest)

    patches.set(FlexAttentionHOP, "__call__", attend)


def _learned(score_mod: Callable[..., Any]) -> list[torch.Tensor]:
    """Tensors of the function around `score_mod` that want a gradient, as a learned bias does."""
    variables = inspect.getclosurevars(score_mod).nonlocals if inspect.isfunction(score_mod) else {}
    return [each for each in variables.values() if isinstance(each, torch.Tensor) and each.requires_grad]


class _FlexAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Any, key: Any, value: Any, *learned: Any) -> tuple[Any, Any]:
        shape = (*query.shape[:-1], value.shape[-1])
        out = query.new_empty_strided(shape, _strides_in_order(shape, query.stride()))
        statistics = query.new_empty(query.shape[:-1], dtype=torch.float32)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(query, key, value, out, statistics, *learned)
        return out, statistics

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        query, key, value, _out, statistics, *learned = ctx.saved_tensors
        _products = torch.empty_like(statistics)
        return tuple(torch.empty_like(each) for each in (query, key, value, *learned))


def _strides_in_order(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Those of a dense tensor of `shape` whose dimensions lie in memory as those with `strides` do."""
    result, step = [0] * len(shape), 1
    for dim in sorted(range(len(shape)), key=lambda dim: (strides[dim], -dim)):
        result[dim] = step
        step *= shape[dim]
    return result
