"""Operators that make a tensor of a number they are given, or look at their arguments first.

Sources: ATen/native/DistributionTemplates.h and Pow.cpp; to the byte what an H200 took (torch 2.11+cu130, 2026-11-28,
benchmarks/operators).
"""

import torch

from peaksight.virtual_gpu.kernels.layouts import contiguous_copies, row_major
from peaksight.virtual_gpu.kernels.reductions import buffers
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

NUMBER_BYTES = 8


def normal(call: KernelCall) -> Temporaries:
    """The deviations are looked at before and after: their minimum, and whether it is negative."""
    deviation = call.args[1]
    shape = deviation.shape
    staging = buffers(
        shape, row_major(shape), list(range(len(shape))), call.rules.multi_processor_count, deviation.itemsize
    )
    minimum = together(*contiguous_copies(deviation), *staging)
    looked_at = (deviation.itemsize, *minimum, 1, -1, -deviation.itemsize)
    return (*looked_at, RESULTS, *looked_at)


def normal_of_number(call: KernelCall) -> Temporaries:
    """The number becomes a tensor of the size of the result."""
    return together(call.out.numel() * call.out.itemsize)


def power_of_number(call: KernelCall) -> Temporaries:
    """The number becomes a tensor of one element, in the type that Python's numbers have."""
    base = call.args[0]
    return () if base == 1 else together(1 if isinstance(base, bool) else NUMBER_BYTES)


TEMPORARIES: dict[object, Rule] = {
    aten.normal.Tensor_Tensor: normal,
    aten.normal.Tensor_float: normal_of_number,
    aten.normal.float_Tensor: normal_of_number,
    aten.pow.Scalar: power_of_number,
}
