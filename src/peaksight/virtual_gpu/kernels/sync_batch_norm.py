"""Batch normalisation in the parts of which `nn.SyncBatchNorm` is made, with statistics of all ranks between them.

Source: ATen/native/cuda/Normalization.cu. Statistics have the type that the kernels accumulate in.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.batch_norm import by_channels, staging
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten


def _statistics(input: torch.Tensor, count: int) -> tuple[torch.Tensor, ...]:
    dtype = torch.float64 if input.dtype == torch.float64 else torch.float32
    return tuple(input.new_empty(input.shape[1], dtype=dtype) for _ in range(count))


def _two_statistics(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    with mode:
        return _statistics(args[0], 2)


def _like_input(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    with mode:
        return torch.empty_like(args[0])


def _like_second(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    with mode:
        return torch.empty_like(args[1])


def _sums(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor | None, ...]:
    """Two sums for the gradient of the input, and the gradients of weight and bias."""
    _, input, _, _, weight, *needed = args
    with mode:
        parameters = input.new_empty(input.shape[1]) if weight is None else weight
        made = (*_statistics(input, 2), torch.empty_like(parameters), torch.empty_like(parameters))
    wanted = (needed[0], needed[0], *needed[1:])
    return tuple(each if is_wanted else None for each, is_wanted in zip(made, wanted, strict=True))


FAKE_KERNELS: dict[str, Callable[..., Any]] = {
    "aten::batch_norm_stats": _two_statistics,
    "aten::batch_norm_gather_stats_with_counts": _two_statistics,
    "aten::batch_norm_elemt": _like_input,
    "aten::batch_norm_backward_reduce": _sums,
    "aten::batch_norm_backward_elemt": _like_second,
}


def forward(call: KernelCall) -> Temporaries:
    """Mean, deviations and count of each block of rows, where a row holds one element of each channel."""
    return together(*staging(call.args[0], 4)) if by_channels(call.args[0]) else ()


def backward(call: KernelCall) -> Temporaries:
    """Two sums of each block of rows, as in the forward."""
    grad, input = call.args[:2]
    return together(*staging(input, 2)) if by_channels(grad, input) else ()


def _nothing(call: KernelCall) -> Temporaries:
    return ()


TEMPORARIES: dict[object, Rule] = {
    aten.batch_norm_stats.default: forward,
    aten.batch_norm_backward_reduce.default: backward,
    aten.batch_norm_gather_stats_with_counts.default: _nothing,
    aten.batch_norm_elemt.default: _nothing,
    aten.batch_norm_backward_elemt.default: _nothing,
}
