"""Products of a sparse matrix and a dense one, as graph networks take them, in the steps of the card.

Source: ATen/native/sparse/cuda/SparseCUDATensorMath.cu, `s_addmm_out_sparse_dense_cuda`, and
ATen/native/TensorShape.cpp for the transposed matrix of the backward pass.

Limitations:
    The workspace of cuSPARSE and the scratch of the sort of a matrix that is not coalesced are left out.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.sparse import is_sparse, made

aten = torch.ops.aten


def sparse_rules() -> dict[Any, Callable[..., Any]]:
    """What the card runs in place of an operator whose arguments are sparse; NotImplemented where none is."""
    return {
        aten.mm.default: _mm,
        aten.addmm.default: _addmm,
        aten._sparse_addmm.default: _addmm,
        aten.mv.default: _mv,
        aten.t.default: _transposed,
        aten.transpose.int: _transposed,
        aten.mul.Tensor: _scaled,
        aten.div.Tensor: _scaled,
    }


def _mm(matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """`_sparse_mm` adds the product to a zero."""
    return _product(matrix, dense, dense.new_zeros(()))


def _addmm(input: torch.Tensor, matrix: torch.Tensor, dense: torch.Tensor, **scales: Any) -> torch.Tensor:
    return _product(matrix, dense, input)


def _mv(matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    return _product(matrix, vector.unsqueeze(-1), vector.new_zeros(())).squeeze(-1)


def _product(matrix: torch.Tensor, dense: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Row pointers and columns in 32 bits, and the result once more in the order of columns."""
    if not is_sparse(matrix) or is_sparse(dense):
        return NotImplemented
    num_rows, num_columns = matrix.shape[0], dense.shape[1]
    result = added.new_empty((num_rows, num_columns))
    indices = (matrix if matrix.is_coalesced() else aten._coalesce.default(matrix))._indices()
    _row_pointers = _pointers(indices[0], num_rows)
    _columns = indices[1].to(torch.int32)
    _by_columns = result.t().contiguous() if num_columns > 1 else result
    _dense = dense if 1 in dense.stride() and dense.stride(0) != dense.shape[1] else dense.contiguous()
    return result


def _pointers(rows: torch.Tensor, num_rows: int) -> torch.Tensor:
    pointers = rows.new_empty(num_rows + 1, dtype=torch.int32)
    rows.to(torch.int32)
    return pointers


def _scaled(left: Any, right: Any) -> torch.Tensor:
    """By one number: other values at the same indices (`mul_out_sparse_zerodim` in SparseTensorMath.cpp)."""
    matrix, number = (left, right) if is_sparse(left) else (right, left)
    if isinstance(number, torch.Tensor) and (is_sparse(number) or number.dim()):
        return NotImplemented
    return made(matrix, matrix._indices(), matrix._values() * number, is_coalesced=matrix.is_coalesced())


def _transposed(matrix: torch.Tensor, first: int = 0, second: int = 1) -> torch.Tensor:
    """A copy, whose order is another."""
    if not is_sparse(matrix) or matrix.sparse_dim() != 2 or matrix.dim() != 2:
        return NotImplemented
    indices, values = matrix._indices().clone(), matrix._values().clone()
    return aten._sparse_coo_tensor_with_dims_and_tensors.default(
        2, 0, (matrix.shape[1], matrix.shape[0]), indices, values, dtype=values.dtype,
        layout=torch.sparse_coo, device=values.device, is_coalesced=False,
    )  # fmt: skip
