"""Batch normalisation: cuDNN's or PyTorch's own, and what each takes.

Sources: ATen/native/Normalization.cpp (`_select_batch_norm_backend`), ATen/native/cuda/Normalization.cu and .cuh;
cuDNN's workspaces as 676 calls on an H200 took them (torch 2.11+cu130, cuDNN 9.19, 2026-11-28).
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels import reductions
from peaksight.virtual_gpu.kernels.accumulators import moments_bytes
from peaksight.virtual_gpu.kernels.layouts import strides_of_copy
from peaksight.virtual_gpu.kernels.reductions import div_up, last_pow2
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together
from peaksight.virtual_gpu.kernels.torch_private import composite, suggest_memory_format

aten = torch.ops.aten

MAX_CUDNN_ELEMENTS = 2**31 - 1
MAX_CUDNN_BATCH = {True: 880_801, False: 65_535}  # in training, and not
# cuDNN's persistent kernels work on tiles of 64 channels and so many rows.
CHANNELS = 64
FORWARD_ROWS = {torch.float32: 64, torch.float16: 160}
BACKWARD_ROWS = 96
# Normalization.cuh, `flexible_launch_configs`.
WIDTH, MAX_THREADS, ROWS_PER_THREAD, MAX_BLOCKS, MIN_BLOCKS = 32, 512, 16, 128, 8


def batch_norm(
    input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None, training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> torch.Tensor:  # fmt: skip
    """`aten::batch_norm` as the card takes it apart."""
    given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not (cudnn_enabled and _cudnn_can(*given[:6])):
        return composite(aten.batch_norm.default)(*given, cudnn_enabled)
    contiguous = input.contiguous(memory_format=suggest_memory_format(input))
    return aten.cudnn_batch_norm.default(contiguous, *given[1:])[0]


def _cudnn_can(
    input: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None, training: bool,
) -> bool:  # fmt: skip
    if weight is None or bias is None or input.dim() < 3 or not 0 < input.numel() < MAX_CUDNN_ELEMENTS:
        return False
    num_statistics = sum(each is not None for each in (running_mean, running_var))
    return (
        torch.bfloat16 not in (input.dtype, weight.dtype)
        and (input.dtype != torch.float16 or weight.dtype == torch.float32)
        and (num_statistics == 2 or (num_statistics == 0 and training))
        and input.shape[0] <= MAX_CUDNN_BATCH[training]
    )


def _cudnn(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    """Outside of training nothing is saved; the reserve is empty."""
    input, weight, training = args[0], args[1], args[5]
    with mode:
        saved = [weight.new_empty(input.shape[1] if training else 0) for _ in range(2)]
        return torch.empty_like(input), *saved, input.new_empty(0, dtype=torch.uint8)


def _cudnn_backward(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    input, weight = args[0], args[2]
    with mode:
        return torch.empty_like(input), torch.empty_like(weight), torch.empty_like(weight)


def _native(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    """Statistics are saved also outside of training, in the type that the kernels accumulate in."""
    input = args[0]
    dtype = torch.float64 if input.dtype == torch.float64 else torch.float32
    with mode:
        return torch.empty_like(input), *(input.new_empty(input.shape[1], dtype=dtype) for _ in range(2))


def _native_backward(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor | None, ...]:
    """The gradient of the input is contiguous, but channels-last in training where all tensors are."""
    grad, input, weight, training, mask = args[0], args[1], args[2], args[7], args[9]
    layout = suggest_memory_format(input) if training and by_channels(grad, input) else torch.contiguous_format
    parameters = input.new_empty(input.shape[1]) if weight is None else weight
    with mode:
        gradients = (torch.empty_like(input, memory_format=layout), *(torch.empty_like(parameters) for _ in range(2)))
    return tuple(each if needed else None for each, needed in zip(gradients, mask, strict=True))


FAKE_KERNELS: dict[str, Callable[..., Any]] = {
    "aten::cudnn_batch_norm": _cudnn,
    "aten::cudnn_batch_norm_backward": _cudnn_backward,
    "aten::native_batch_norm": _native,
    "aten::native_batch_norm_backward": _native_backward,
}


def by_channels(*tensors: torch.Tensor) -> bool:
    """Whether PyTorch's channels-last kernels run: a row of `tensors` holds one element of each channel."""
    return all(
        any(each.is_contiguous(memory_format=layout) for layout in (torch.channels_last, torch.channels_last_3d))
        or (each.is_contiguous() and each.stride(1) == 1)
        for each in tensors
    )


def cudnn_forward(call: KernelCall) -> Temporaries | None:
    """In training and channels-last: mean, deviations and count of each tile, and flags."""
    input, training = call.args[0], call.args[5]
    groups = div_up(input.shape[1], CHANNELS)
    if not training or not _is_channels_last(input):
        return ()
    if input.dtype not in FORWARD_ROWS:
        return None
    tiles = div_up(_rows(input), FORWARD_ROWS[input.dtype])
    return together(1072 + 4 * groups + tiles * groups * (8 * CHANNELS + 4))


def cudnn_backward(call: KernelCall) -> Temporaries:
    """Channels-last: two sums of each tile, and flags."""
    input = call.args[0]
    groups = div_up(input.shape[1], CHANNELS)
    if not _is_channels_last(input):
        return ()
    return together(1056 + 4 * groups + div_up(_rows(input), BACKWARD_ROWS) * groups * 8 * CHANNELS)


def _is_channels_last(input: torch.Tensor) -> bool:
    return suggest_memory_format(input) is not torch.contiguous_format


def _rows(input: torch.Tensor) -> int:
    return input.numel() // max(input.shape[1], 1)


def native_forward(call: KernelCall) -> Temporaries:
    """The statistics in training: of two-dimensional channels-last images those of each block of rows.

    Channels-last volumes and whatever is not contiguous go through `var_mean_out`: `batch_norm_choose_impl`.
    """
    input, training = call.args[0], call.args[5]
    if not training or (input.is_contiguous() and input.stride(1) != 1):
        return ()
    if input.is_contiguous() or input.is_contiguous(memory_format=torch.channels_last):
        return together(*staging(input, 4))
    return _moments(input, call.rules.multi_processor_count)


def _moments(input: torch.Tensor, num_multiprocessors: int) -> Temporaries:
    """Mean and variance of each channel; bfloat16 is copied into single precision before, half is read as it is."""
    is_copied = input.dtype == torch.bfloat16
    dtype, strides = (torch.float32, strides_of_copy(input)) if is_copied else (input.dtype, input.stride())
    dims = [dim for dim in range(input.dim()) if dim != 1]
    staged = reductions.staging(input.shape, strides, dims, num_multiprocessors, moments_bytes(dtype), dtype.itemsize)
    copy = input.numel() * dtype.itemsize
    return (copy, *staged, -copy) if is_copied else staged


def native_backward(call: KernelCall) -> Temporaries:
    """Two sums for each channel; the deviation too, where cuDNN did not save it."""
    grad, input, deviation, training, mask = (call.args[position] for position in (0, 1, 6, 7, 9))
    is_reduced, rows_of_channels = training or mask[1] or mask[2], by_channels(input)
    if is_reduced and mask[0] and not rows_of_channels:
        return ()
    channel = input.shape[1] * _accumulator_bytes(input)
    known = () if deviation.numel() else (channel,)
    if not is_reduced:
        return (*known, RESULTS)
    staged = together(*staging(input, 2)) if rows_of_channels and by_channels(grad) else ()
    sums = (channel, channel) if rows_of_channels or mask[0] else ()
    return (*known, *sums, *staged, RESULTS)


def staging(input: torch.Tensor, num_values: int) -> list[int]:
    """The bytes of `num_values` for each channel and block of rows, and a semaphore for each column of blocks."""
    rows, channels = _rows(input), input.shape[1]
    width = min(last_pow2(channels), WIDTH)
    height = min(last_pow2(div_up(rows, ROWS_PER_THREAD)), MAX_THREADS // width)
    if width * height != MAX_THREADS:
        width = min(last_pow2(channels), MAX_THREADS // height)
    num_blocks = min(div_up(rows, height * ROWS_PER_THREAD), MAX_BLOCKS)
    if num_blocks < MIN_BLOCKS:
        return []
    return [num_values * channels * num_blocks * _accumulator_bytes(input), 4 * div_up(channels, width)]


def _accumulator_bytes(input: torch.Tensor) -> int:
    return 8 if input.dtype == torch.float64 else 4


TEMPORARIES: dict[object, Rule] = {
    aten.cudnn_batch_norm.default: cudnn_forward,
    aten.cudnn_batch_norm_backward.default: cudnn_backward,
    aten.native_batch_norm.default: native_forward,
    aten.native_batch_norm_backward.default: native_backward,
}
