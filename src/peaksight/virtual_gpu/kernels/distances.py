"""What the gradients of distances take beside their results: ATen/native/cuda/DistanceKernel.cu.

Every pair of points leaves its share of the gradient in a buffer, which is then summed. To the byte what an H200 took
(torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

import torch

from peaksight.virtual_gpu.kernels.layouts import row_major
from peaksight.virtual_gpu.kernels.reductions import split_sum
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten


def cdist_backward(call: KernelCall) -> Temporaries:
    """The buffer holds, for each point of the second set, a gradient of the first."""
    left, right = call.args[1:3]
    batch = call.out.shape[:-2].numel()
    return _summed(call, (batch, right.shape[-2], left.shape[-2], left.shape[-1]), dim=1)


def pdist_backward(call: KernelCall) -> Temporaries:
    """The buffer holds, for each other point, a gradient of every point."""
    num_points, width = call.args[1].shape
    return _summed(call, (max(0, num_points - 1), num_points, width), dim=0)


def _summed(call: KernelCall, shape: tuple[int, ...], dim: int) -> Temporaries:
    num_bytes = torch.Size(shape).numel() * call.out.itemsize
    if not num_bytes or call.argument("p") == 0:
        return ()
    sums = split_sum(shape, row_major(shape), [dim], call.out.dtype, call.rules.multi_processor_count)
    return together(num_bytes, *sums)


TEMPORARIES: dict[object, Rule] = {
    aten._cdist_backward.default: cdist_backward,
    aten._pdist_backward.default: pdist_backward,
}
