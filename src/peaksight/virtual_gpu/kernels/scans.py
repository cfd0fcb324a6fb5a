"""What sums along a dimension take beside their results: ATen/native/cuda/ScanKernels.cpp and ScanUtils.cuh.

CUB scans a tensor that is one row; other tensors are scanned without it. To the byte what an H200 took (torch
2.11+cu130, 2026-11-28, benchmarks/operators).
"""

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten


def scan(call: KernelCall) -> Temporaries:
    """The input in the type of the sums and in line, and CUB's state."""
    tensor, dim, out = call.args[0], call.args[1], call.out
    if tensor.numel() == 0 or tensor.dim() == 0:
        return ()
    num_bytes = out.numel() * out.itemsize
    copies = [num_bytes] * (tensor.dtype != out.dtype) + [num_bytes] * (not tensor.is_contiguous())
    state = [cub.scan(tensor.numel(), out.dtype)] if tensor.shape[dim] == tensor.numel() else []
    return together(*copies, *state)


TEMPORARIES: dict[object, Rule] = dict.fromkeys((aten.cumsum.default, aten.cumsum.out, aten.cumprod.default), scan)
