"""Which kind an operator is of: by its name, and by how its arguments lie in memory."""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.timing.efficiencies import POINTWISE, listed_kind
from peaksight.virtual_gpu.timing.work import argument_of, name_of, tensors_in

# What the memory of a matrix has to be a multiple of, from row to row, for the fast kernels of cuBLAS.
_ALIGNMENT_BYTES = 16
# Tensor cores take channels by eights.
_CHANNELS_AT_ONCE = 8
_WIDE_HEAD = 128
# The elements of a channel up to which cuDNN keeps them on the chip between its two passes.
_MAX_CHANNEL_NUMEL = 2**15


def kind_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    """The name of the kind of `func(*args, **kwargs)`, which returned `out`."""
    listed = listed_kind(name_of(func))
    variant = _VARIANTS.get(listed)
    return listed if variant is None else variant(listed, func, args, kwargs, out)


def arithmetic_of(args: tuple[Any, ...], out: Any) -> str:
    """What the kernels compute in: the name of a `Reach`, by the first floating-point tensor."""
    dtype = next((tensor.dtype for tensor in tensors_in((*args, out)) if tensor.dtype.is_floating_point), torch.float32)
    return {1: "fp8", 2: "half", 8: "double"}.get(dtype.itemsize, "fp32")


def _pointwise(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    """`cast` to another dtype; `strided` where an input lies otherwise than the result: nothing is vectorised.

    `transposed` where not even neighbours are neighbours.
    """
    if not isinstance(out, torch.Tensor):
        return name
    inputs = [tensor for tensor in tensors_in(args) if tensor.numel() > 1]
    if any(tensor.dtype != out.dtype and tensor.shape == out.shape for tensor in inputs):
        return "cast"
    if any(tensor.dim() and tensor.stride(-1) > 1 for tensor in inputs) and out.stride(-1) == 1:
        return "transposed"
    return "strided" if any(tensor.stride() != out.stride() for tensor in inputs) else name


def _product(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    return name if all(map(_is_aligned, tensors_in((*args, out)))) else f"{name}_unaligned"


def _is_aligned(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2:
        return True
    return max(tensor.stride()[-2:]) * tensor.itemsize % _ALIGNMENT_BYTES == 0


def _convolution(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    """By groups, by channels, and by whether those lie next to each other."""
    images = args[1] if name.endswith("_backward") else args[0]
    if argument_of(func, args, kwargs, "groups", 1) > 1:
        return f"grouped_{name}"
    if images.shape[1] % _CHANNELS_AT_ONCE:
        return f"thin_{name}"
    is_last = images.dim() == 4 and images.shape[1] > 1 and images.is_contiguous(memory_format=torch.channels_last)
    return f"last_{name}" if is_last else name


def _attention(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    return f"wide_{name}" if next(tensors_in(args)).shape[-1] >= _WIDE_HEAD else name


def _batch_norm(name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> str:
    images = next(tensors_in(args))
    return f"large_{name}" if images.numel() > images.shape[1] * _MAX_CHANNEL_NUMEL else name


_VARIANTS: dict[str, Callable[..., str]] = {
    POINTWISE: _pointwise,
    "matmul": _product,
    "batched_matmul": _product,
    "convolution": _convolution,
    "convolution_backward": _convolution,
    "attention": _attention,
    "attention_backward": _attention,
    "batch_norm": _batch_norm,
    "batch_norm_backward": _batch_norm,
}
