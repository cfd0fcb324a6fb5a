"""Pointwise kernels that take a small tensor of their own: H200, torch 2.11+cu130, 2026-11-28, benchmarks/operators."""

import torch

from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

INDEX_BYTES = 8


def scalar_base(call: KernelCall) -> Temporaries:
    """The base of a power becomes a tensor, but for 1: ATen/native/Pow.cpp."""
    base = call.args[0]
    if base == 1:
        return ()
    return together(torch.complex128.itemsize if isinstance(base, complex) else torch.float64.itemsize)


def complex_magnitude(call: KernelCall) -> Temporaries:
    """Complex numbers at first, then copied: `unary_op_impl_with_complex_to_float_out` of ATen/native/UnaryOps.cpp."""
    tensor = call.args[0]
    return together(tensor.numel() * tensor.itemsize) if tensor.is_complex() and tensor.numel() else ()


def bernoulli(call: KernelCall) -> Temporaries:
    """Probabilities in half become single ones: `bernoulli_kernel` of ATen/native/cuda/DistributionBernoulli.cu."""
    tensor, *given = call.args
    probabilities = given[0] if given and isinstance(given[0], torch.Tensor) else tensor
    accumulated = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    is_read = probabilities.dtype == accumulated or not probabilities.numel()
    return () if is_read else together(probabilities.numel() * accumulated.itemsize)


def unfold_backward(call: KernelCall) -> Temporaries:
    """Overlapping windows are gathered by the positions that they cover: ATen/native/cuda/UnfoldBackwardKernel.cu."""
    sizes, dim, size, step = (call.argument(name) for name in ("input_sizes", "dim", "size", "step"))
    if step >= size:
        return ()
    num_steps = (sizes[dim] - size) // step
    return together(INDEX_BYTES * (num_steps * step + size))


TEMPORARIES: dict[object, Rule] = {
    **dict.fromkeys((aten.abs.default, aten.angle.default), complex_magnitude),
    **dict.fromkeys((aten.bernoulli.default, aten.bernoulli_.Tensor), bernoulli),
    aten.pow.Scalar: scalar_base,
    aten.unfold_backward.default: unfold_backward,
}
