"""What normalisations take beside their results.

Sources: ATen/native/cuda/layer_norm_kernel.cu and group_norm_kernel.cu; to the byte what an H200 took (torch
2.11+cu130, 2026-11-28, benchmarks/operators).
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.layouts import contiguous_copies
from peaksight.virtual_gpu.kernels.reductions import div_up, split_sum
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

# layer_norm_kernel.cu, `LaunchGammaBetaBackwardCUDAKernel`: partial sums when there are many more rows than columns.
MANY_ROWS = 64 * 1024
MAX_BLOCKS = 32 * 1024
TILE = 32


def row_norm(call: KernelCall) -> Temporaries:
    """The forward of layer_norm and rms_norm: its input in rows that lie one behind the other."""
    return (*contiguous_copies(call.args[0]), RESULTS)


def row_norm_backward(call: KernelCall) -> Temporaries:
    """The backward of layer_norm and rms_norm: the gradients of weight and bias are summed in two passes."""
    grad, input, shape = call.args[:3]
    weight, mask = call.argument("weight"), call.argument("output_mask")
    copies = (*contiguous_copies(input), RESULTS, *contiguous_copies(grad))
    width = prod(shape)
    num_blocks = _num_blocks(input.numel() // max(width, 1), width, call.rules.multi_processor_count)
    if weight is None or not num_blocks:
        return copies
    partial = [num_blocks * width * weight.itemsize for needed in mask[1:] if needed]
    sums = _sum_of_blocks(num_blocks, width, weight.dtype, call.rules.multi_processor_count)
    return (*copies, *partial, *(size for _ in partial for size in sums), *(-size for size in partial))


def _num_blocks(rows: int, width: int, num_multiprocessors: int) -> int:
    """How many partial sums there are of each column: 0 where one kernel sums it all."""
    if rows <= MANY_ROWS or width // TILE >= num_multiprocessors // 2:
        return 0
    return min(MAX_BLOCKS // div_up(width, TILE), div_up(rows, TILE))


def _sum_of_blocks(num_blocks: int, width: int, dtype: torch.dtype, num_multiprocessors: int) -> Temporaries:
    split = split_sum([num_blocks, width], [width, 1], [0], dtype, num_multiprocessors)
    return together(width * dtype.itemsize, *split)


def group_norm(call: KernelCall) -> Temporaries:
    """A factor and a summand for each channel of each sample, where channels have more than one element."""
    _, weight, bias, num_samples, num_channels, size = call.args[:6]
    has_affine = weight is not None or bias is not None
    per_channel = _accumulated(call, num_samples * num_channels)
    return together(per_channel, per_channel) if has_affine and size > 1 else ()


def group_norm_backward(call: KernelCall) -> Temporaries:
    """Two sums for each channel, and three factors with which the gradient of the input is put together."""
    weight, num_samples, num_channels, size, num_groups, mask = call.args[4:10]
    channels = _accumulated(call, num_samples * num_channels)
    groups = _accumulated(call, num_samples * num_groups)
    factors = (groups, groups, *([channels] if weight is not None and size > 1 else [])) if mask[0] else ()
    given_back = (-groups, -groups, *(-each for each in factors[2:])) if mask[0] else ()
    return (channels, channels, *factors, *given_back, -channels, -channels)


def _accumulated(call: KernelCall, count: int) -> int:
    """Bytes of `count` numbers in the type that the kernels accumulate in."""
    return count * (8 if call.args[0].dtype == torch.float64 else 4)


TEMPORARIES: dict[object, Rule] = {
    aten.native_layer_norm.default: row_norm,
    aten._fused_rms_norm.default: row_norm,
    aten.native_layer_norm_backward.default: row_norm_backward,
    aten._fused_rms_norm_backward.default: row_norm_backward,
    aten.native_group_norm.default: group_norm,
    aten.native_group_norm_backward.default: group_norm_backward,
}
