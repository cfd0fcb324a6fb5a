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


def unfold_backward(call: KernelCall) -> Temporaries:
    """Overlapping windows are gathered by the positions that they cover: ATen/native/cuda/UnfoldBackwardKernel.cu."""
    sizes, dim, size, step = (call.argument(name) for name in ("input_sizes", "dim", "size", "step"))
    if step >= size:
        return ()
    num_steps = (sizes[dim] - size) // step
    return together(INDEX_BYTES * (num_steps * step + size))


TEMPORARIES: dict[object, Rule] = {
    aten.pow.Scalar: scalar_base,
    aten.unfold_backward.default: unfold_backward,
}
