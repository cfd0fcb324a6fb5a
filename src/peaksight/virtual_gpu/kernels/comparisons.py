"""Whole tensors compared: ATen/native/TensorCompare.cpp and ATen/native/cuda/Equal.cpp.

Libraries compare tensors to check what they computed: a run that works passes.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.tensors.values import expect

aten = torch.ops.aten


def comparison_rules() -> dict[Any, Callable[..., Any]]:
    """`torch.allclose` and `torch.equal` as the kernels that they run and the value that they read."""
    return {aten.allclose.default: _allclose, aten.equal.default: _equal}


def _allclose(
    input: torch.Tensor, other: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(expect(torch.isclose(input, other, rtol, atol, equal_nan).all(), True).item())


def _equal(input: torch.Tensor, other: torch.Tensor) -> bool:
    """C++ compares a single truth to ask for it (`is_scalar_tensor_true`): `istft` whether its windows leave gaps."""
    if input.shape != other.shape:
        return False
    is_question = input.dim() == 0 and input.dtype == torch.bool
    return input is other or bool(expect((input == other).all(), not is_question).item())
