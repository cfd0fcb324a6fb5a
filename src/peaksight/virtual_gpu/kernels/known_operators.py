"""Operators whose hidden memory is known: by a rule, by measurement, or because their source takes none.

`measured_operators.txt` names the operators that ran in cases of benchmarks/operators in which the virtual card took
the same blocks as a real one; `make operators` writes it.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch

MEASURED = frozenset(Path(__file__).with_name("measured_operators.txt").read_text().split())
# One thread an element, or no kernel at all.
HARMLESS_TAGS = (torch.Tag.pointwise, torch.Tag.inplace_view)
# Not measured; their CUDA functions make their results and launch kernels that take nothing: ATen/native/cuda/
# Distributions.cpp and WeightNorm.cu, ATen/native/TensorFactories.cpp, ATen/native/sparse/SparseTensor.cpp.
WITHOUT_TEMPORARIES = {
    "aten::_dirichlet_grad",
    "aten::_sparse_coo_tensor_with_dims_and_tensors",
    "aten::_standard_gamma",
    "aten::_standard_gamma_grad",
    "aten::_weight_norm_interface",
    "aten::_weight_norm_interface_backward",
    "aten::binomial",
    "aten::poisson",
    "aten::rand_like",
    "aten::random",
}
# Operators of torch.distributed: the kernels of others, and those of NCCL. Measured runs of two ranks call them.
COMMUNICATION = ("fsdp::", "_c10d_functional::", "c10d::")


def family(func: Any) -> str:
    """`aten::add` for every overload of add, add_ and add.out: they share their kernels."""
    return func.name().partition(".")[0].removesuffix("_")


@cache
def is_known(func: Any) -> bool:
    """Whether the hidden memory of `func` was measured, or there is none."""
    if not isinstance(func, torch._ops.OpOverload):
        return False
    if func.is_view or any(tag in func.tags for tag in HARMLESS_TAGS):
        return True
    return family(func) in MEASURED | WITHOUT_TEMPORARIES or func.name().startswith(COMMUNICATION)
