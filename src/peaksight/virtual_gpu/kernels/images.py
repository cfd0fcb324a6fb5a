"""What resampling, pooling and padding take beside their results, and the memory that their results lie in.

Sources: ATen/native/cuda/UpSample*.cu, AdaptiveMaxPooling2d.cu, ReflectionPad.cu, Im2Col.cu, Col2Im.cu,
RreluWithNoise.cu and Activation.cpp; to the byte what an H200 took (torch 2.11+cu130, 2026-11-28,
benchmarks/operators).
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.layouts import contiguous_copies
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together
from peaksight.virtual_gpu.kernels.torch_private import suggest_memory_format

aten = torch.ops.aten
FEWEST_CHANNELS_LAST = 4


def copies_of(*names: str, results: bool = False) -> Rule:
    """Copies of the arguments called `names` that are not contiguous, and before them of such `results`."""

    def rule(call: KernelCall) -> Temporaries:
        out = call.out if isinstance(call.out, (tuple, list)) else (call.out,)
        return together(*contiguous_copies(*(out if results else ()), *map(call.argument, names)))

    return rule


def nearest_backward(call: KernelCall) -> Temporaries:
    """A copy of a gradient that does not lie as the result, as of a part of a concatenation (UpSampleNearest2d.cu)."""
    gradient, layout = call.argument("grad_output"), torch.channels_last
    if gradient.shape == call.out.shape:
        return ()
    is_last = suggest_memory_format(gradient) is layout and call.out.is_contiguous(memory_format=layout)
    if not is_last or call.out.shape[1] < FEWEST_CHANNELS_LAST:
        return together(*contiguous_copies(call.out, gradient))
    return () if gradient.is_contiguous(memory_format=layout) else together(gradient.numel() * gradient.itemsize)


def resized(call: KernelCall) -> Temporaries:
    """The result begins as a tensor like the argument, and is then made larger."""
    tensor = call.args[0]
    first, copies = tensor.numel() * tensor.itemsize, contiguous_copies(tensor)
    if call.out.untyped_storage().nbytes() <= first:
        return (RESULTS, *together(*copies))
    return (first, *copies, RESULTS, -first)


def _resized(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A result smaller than the argument stays in memory of the argument's size."""
    out, tensor = run(args, kwargs), args[0]
    if tensor.numel() <= out.numel():
        return out
    with mode:
        return tensor.new_empty(tensor.numel()).resize_(out.shape)


def _contiguous(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    with mode:
        return torch.empty_like(run(args, kwargs), memory_format=torch.contiguous_format)


def _fractional_max_pool3d(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    input, _, output_size = args[:3]
    with mode:
        out = input.new_empty((*input.shape[:-3], *output_size))
        return out, torch.empty_like(out, dtype=torch.int64)


def _fractional_max_pool3d_backward(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    with mode:
        return torch.empty_like(args[1])


FAKE_KERNELS: dict[str, Callable[..., Any]] = {
    "aten::im2col": _resized,
    "aten::col2im": _resized,
    "aten::glu_backward": _contiguous,
    "aten::fractional_max_pool3d": _fractional_max_pool3d,
    "aten::fractional_max_pool3d_backward": _fractional_max_pool3d_backward,
}
OF_SELF = copies_of("self")
OF_GRADIENT = copies_of("grad_output")
TEMPORARIES: dict[object, Rule] = {
    aten.im2col.default: resized,
    aten.col2im.default: resized,
    aten.rrelu_with_noise.default: OF_SELF,
    aten.reflection_pad1d.default: OF_SELF,
    aten.reflection_pad2d.default: OF_SELF,
    aten.reflection_pad3d.default: OF_SELF,
    aten.reflection_pad2d_backward.default: OF_GRADIENT,
    aten.upsample_nearest2d_backward.default: nearest_backward,
    aten._upsample_nearest_exact2d_backward.default: nearest_backward,
    aten.upsample_bicubic2d_backward.default: OF_GRADIENT,
    aten._upsample_bilinear2d_aa.default: copies_of("self", results=True),
    aten._upsample_bicubic2d_aa.default: copies_of("self", results=True),
    aten._upsample_bilinear2d_aa_backward.default: OF_GRADIENT,
    aten._upsample_bicubic2d_aa_backward.default: OF_GRADIENT,
    aten.adaptive_max_pool2d.default: copies_of("self", results=True),
    aten.adaptive_max_pool2d_backward.default: lambda call: together(
        *contiguous_copies(*map(call.argument, ("grad_output", "indices")), call.out)
    ),
}
