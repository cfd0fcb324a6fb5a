"""Copies that a matrix product makes of operands which cuBLAS cannot read: ATen/native/cuda/Blas.cpp.

cuBLAS needs one of the two dimensions of a matrix to be dense, and reads a conjugate only of one that it transposes.
What has neither dimension dense (the views of `einsum`), or repeats elements (the gradient of a sum, which is
expanded), is copied for the length of the product.
"""

from collections.abc import Callable, Iterable, Iterator

import torch

from peaksight.virtual_gpu.kernels.layouts import is_dense
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries

aten = torch.ops.aten

# Where the first of the two operands is among the arguments.
OF_MATRICES = {
    aten.mm.default: 0,
    aten.mm.out: 0,
    aten.addmm.default: 1,
    aten.addmm.out: 1,
    aten._addmm_activation.default: 1,
}
OF_BATCHES = {aten.bmm.default: 0, aten.bmm.out: 0, aten.baddbmm.default: 1, aten.baddbmm.out: 1}


def product(call: KernelCall) -> Temporaries:
    """The copies of both operands, the first to be read first: the second one where the result is row by row."""
    is_batch = call.func in OF_BATCHES
    place = OF_BATCHES[call.func] if is_batch else OF_MATRICES[call.func]
    operands = call.args[place : place + 2]
    if not call.out.numel() or any(each.layout is not torch.strided or not each.numel() for each in operands):
        return ()
    rows_first = _row_by_row(call.out) if is_batch else call.out.is_contiguous()
    is_copied = _batch_is_copied if is_batch else _matrix_is_copied
    ordered = reversed(operands) if rows_first else operands
    return tuple(_bytes_of_copies(ordered, rows_first, is_copied))


def _bytes_of_copies(
    operands: Iterable[torch.Tensor], rows_first: bool, is_copied: Callable[[torch.Tensor, bool], bool]
) -> Iterator[int]:
    for operand in operands:
        if is_copied(operand, rows_first):
            yield operand.numel() * operand.itemsize


def _matrix_is_copied(matrix: torch.Tensor, rows_first: bool) -> bool:
    """`prepare_matrix_for_cublas`."""
    (rows, columns), (down, across) = matrix.shape, matrix.stride()
    if is_dense(matrix):
        is_transposed = matrix.is_contiguous()
    elif down == 1 and across >= max(1, rows):
        is_transposed = False
    elif across == 1 and down >= max(1, columns):
        is_transposed = True
    else:
        return True
    return matrix.is_conj() and is_transposed == rows_first


def _batch_is_copied(batch: torch.Tensor, rows_first: bool) -> bool:
    """`prepare_batch_matrix_for_cublas`."""
    fast, leading = (2, 1) if rows_first else (1, 2)
    strides, shape = batch.stride(), batch.shape
    if strides[fast] == 1 and strides[leading] >= max(1, shape[fast]):
        return batch.is_conj()
    if strides[leading] == 1 and strides[fast] >= max(1, shape[leading]):
        return False
    if batch.is_contiguous() and 0 not in strides[1:]:
        return batch.is_conj() and rows_first
    return True


def _row_by_row(result: torch.Tensor) -> bool:
    """Whether a product of batches is written row by row: else column by column, if it can be."""
    (_, rows, columns), (_, down, across) = result.shape, result.stride()
    if down == 1 and (columns == 1 or across >= max(1, rows)):
        return False
    return across == 1 and (rows == 1 or down >= max(1, columns))


TEMPORARIES: dict[object, Rule] = dict.fromkeys((*OF_MATRICES, *OF_BATCHES), product)
