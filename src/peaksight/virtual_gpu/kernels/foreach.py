"""What operators on lists of tensors take beside their results.

Source: ATen/native/cuda/ForeachReduceOp.cu; to the byte what an H200 took (torch 2.11+cu130, 2026-11-28,
benchmarks/operators).
"""

from math import inf

import torch

from peaksight.virtual_gpu.kernels.accumulators import sum_bytes
from peaksight.virtual_gpu.kernels.layouts import is_dense
from peaksight.virtual_gpu.kernels.reductions import div_up
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries

aten = torch.ops.aten

CHUNK = 65_536
ORDERS = (0, 1, 2, inf)


def norm(call: KernelCall) -> Temporaries | None:
    """A partial norm for each chunk of each tensor; a list that needs one kernel for each tensor is not known."""
    tensors, order = call.args[0], call.argument("ord")
    dtypes = {each.dtype for each in tensors}
    is_fast = len(dtypes) == 1 and tensors[0].is_floating_point() and all(map(is_dense, tensors))
    if not is_fast or order not in ORDERS:
        return None
    num_chunks = div_up(max(each.numel() for each in tensors), CHUNK)
    return (len(tensors) * num_chunks * sum_bytes(call.argument("dtype") or tensors[0].dtype), RESULTS)


TEMPORARIES: dict[object, Rule] = {aten._foreach_norm.Scalar: norm}
