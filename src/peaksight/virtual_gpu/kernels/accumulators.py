"""What a thread of a reduction accumulates for each output, by operator: ATen/native/cuda/Reduce*Kernel.cu.

To the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

LOW_PRECISION = (torch.float16, torch.bfloat16)


def sum_bytes(dtype: torch.dtype) -> int:
    """A sum or product: half precision is summed up in single."""
    return 4 if dtype in LOW_PRECISION else dtype.itemsize


def norm_bytes(dtype: torch.dtype) -> int:
    """A norm: a real number also of complex ones."""
    return sum_bytes(dtype) // (1 + dtype.is_complex)


def extremum_bytes(dtype: torch.dtype) -> int:
    """An extremum or a truth value: in the type of the input."""
    return dtype.itemsize


def both_extrema_bytes(dtype: torch.dtype) -> int:
    """A minimum and a maximum."""
    return 2 * dtype.itemsize


def position_bytes(dtype: torch.dtype) -> int:
    """An extremum with its int64 position: a padded pair."""
    return 16


def moments_bytes(dtype: torch.dtype) -> int:
    """Mean, squared deviations, and the count as an integer and as a number: ATen/native/SharedReduceOps.h."""
    return 32 if dtype == torch.float64 else 16


ACCUMULATORS: dict[Any, Callable[[torch.dtype], int]] = {
    **dict.fromkeys((aten.linalg_vector_norm.default, aten.norm.ScalarOpt_dim, aten.norm.Scalar), norm_bytes),
    **dict.fromkeys((aten.max.default, aten.min.default, aten.amax.default, aten.amin.default), extremum_bytes),
    **dict.fromkeys((aten.any.default, aten.any.dim, aten.any.dims), extremum_bytes),
    **dict.fromkeys((aten.all.default, aten.all.dim, aten.all.dims), extremum_bytes),
    aten.aminmax.default: both_extrema_bytes,
    **dict.fromkeys((aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim), position_bytes),
    **dict.fromkeys((aten.var.correction, aten.std.correction), moments_bytes),
    **dict.fromkeys((aten.var_mean.correction, aten.std_mean.correction), moments_bytes),
}
SUMS = (
    aten.sum.default, aten.sum.dim_IntList, aten.nansum.default, aten.mean.default, aten.mean.dim,
    aten.prod.default, aten.prod.dim_int,
)  # fmt: skip
TRUTHS = (
    aten.any.default, aten.any.dim, aten.any.dims, aten.all.default, aten.all.dim, aten.all.dims,
)  # fmt: skip
# Their kernels take the whole tensor as one row.
OF_ALL = (aten.max.default, aten.min.default, aten.argmax.default, aten.argmin.default)
