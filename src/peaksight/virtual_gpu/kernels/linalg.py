"""What solving linear systems takes beside its results: ATen/native/BatchLinearAlgebra.cpp and cuda/linalg.

LU factors, solutions, inverses and determinants, in cuBLAS's batched kernels, cuSOLVER or MAGMA, as PyTorch chooses by
size. To the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators) for float32.

Limitations:
    cuSOLVER's workspace for one LU or Cholesky factor is a bound: under a per cent of a matrix of 100 x 100.
    Matrix exponentials: the most that any norm takes, the small blocks aside.
    Releases from torch 2.12 on, without MAGMA, may choose otherwise among the batched kernels.
"""

import torch

from peaksight.virtual_gpu.kernels.temporaries import (
    CUBLAS_HANDLE,
    RESULTS,
    KernelCall,
    Rule,
    Temporaries,
    given_back,
    together,
)

aten = torch.ops.aten

POINTER_BYTES = 8
INDEX_BYTES = 8
PIVOT_BYTES = 4
INFO_BYTES = 4
MAX_SMALLEST_WORKSPACE = 32
NUM_POWERS, PARTIAL_SUMS, PARTIAL_SUMS_OF_ONE = 5, 5, 7


def batch_of(matrices: torch.Tensor) -> int:
    """How many matrices."""
    return matrices.shape[:-2].numel()


def num_bytes_of(tensor: torch.Tensor) -> int:
    """The bytes of its elements."""
    return tensor.numel() * tensor.itemsize


def pointers(batch: int, arrays: int = 2) -> Temporaries:
    """The addresses of every matrix for a batched kernel of cuBLAS: `getCurrentCUDABlasHandle` is called after them."""
    addresses = [POINTER_BYTES * batch] * arrays
    return (*addresses, CUBLAS_HANDLE, *given_back(addresses))


def lu_factors(matrices: torch.Tensor) -> Temporaries:
    """One factor in cuSOLVER, many small ones in cuBLAS, others in MAGMA, which takes nothing."""
    rows, columns = matrices.shape[-2:]
    batch = batch_of(matrices)
    if rows != columns or not matrices.numel():
        return ()
    if batch == 1:
        linear = 21 * rows * matrices.itemsize // 4 if rows > MAX_SMALLEST_WORKSPACE else 0
        return together(768 + linear)
    return pointers(batch, 1) if rows <= 16 or (rows <= 128 and batch <= 16) else ()


def triangular_solution(n: int, batch: int) -> Temporaries:
    """Few large systems are solved one by one, others in a batch."""
    return (CUBLAS_HANDLE,) if batch <= 8 and n >= 64 else pointers(batch)


def lu_solution(n: int, num_columns: int, batch: int, item_bytes: int, *, adjoint: bool = False) -> Temporaries:
    """In cuBLAS or cuSOLVER, else with two triangular systems and the permutation."""
    is_small = n <= 16 if n == num_columns else n <= 8
    few_columns = n != num_columns and num_columns <= (8 if n <= 64 else 2 if n <= 128 else 0)
    one_by_one = n != num_columns and batch <= 2 and 8 < n <= 128
    if one_by_one and (num_columns <= 2 or n <= 32 or (n <= 64 and (num_columns <= 64 or adjoint))):
        return together(INFO_BYTES)
    if is_small or few_columns:
        return pointers(batch)
    identity, permutation, right = INDEX_BYTES * n, INDEX_BYTES * n * batch, item_bytes * n * num_columns * batch
    permuted = (permutation,) if batch == 1 else (identity, permutation, -identity)
    triangular = triangular_solution(n, batch)
    if adjoint:
        return (*permuted, *triangular, *triangular, right, -right, -permutation)
    alive = (*permuted, identity, permutation, right)
    return (*alive, *triangular, *triangular, *given_back(alive))


def lu_factor(call: KernelCall) -> Temporaries:
    """The factors, pivots and infos are results."""
    return lu_factors(call.args[0])


def lu_solve(call: KernelCall) -> Temporaries:
    """The right side is copied into the result."""
    factors, right, left = call.args[0], call.args[2], call.argument("left")
    n, adjoint = factors.shape[-1], call.argument("adjoint") == bool(left)
    if not right.numel():
        return ()
    columns = right.shape[-1 if left else -2]
    return lu_solution(n, columns, batch_of(right), right.itemsize, adjoint=adjoint)


def solve(call: KernelCall) -> Temporaries:
    """The factors and pivots are results, too; a vector is solved as a matrix of one column, in a copy."""
    matrices, right = call.args[:2]
    if not right.numel() or not matrices.numel():
        return lu_factors(matrices)
    is_vector = right.dim() == 1 or (matrices.dim() - 1 == right.dim() and right.shape == matrices.shape[:-1])
    columns = 1 if is_vector else right.shape[-1]
    copy = (num_bytes_of(right),) if is_vector else ()
    solution = lu_solution(matrices.shape[-1], columns, batch_of(matrices), right.itemsize)
    return (*lu_factors(matrices), *copy, *solution, *given_back(copy))


def inverse(call: KernelCall) -> Temporaries:
    """The solution for the identity, with factors and pivots of its own."""
    matrices = call.args[0]
    if not matrices.numel():
        return ()
    n, batch = matrices.shape[-1], batch_of(matrices)
    factors = (num_bytes_of(matrices), PIVOT_BYTES * n * batch)
    return (*factors, *lu_factors(matrices), *lu_solution(n, n, batch, matrices.itemsize), *given_back(factors))


def determinant(call: KernelCall) -> Temporaries:
    """The product of the diagonal, and the sign of the permutation."""
    matrices = call.args[0]
    n, batch = matrices.shape[-1], batch_of(matrices)
    diagonal = matrices.itemsize * batch
    sign = _permutation_sign(n, batch)
    infos = INFO_BYTES * batch
    return (infos, *lu_factors(matrices), diagonal, *sign, *given_back(sign), -diagonal, -infos)


def log_determinant(call: KernelCall) -> Temporaries:
    """The signs and logarithms of the diagonal."""
    matrices = call.args[0]
    n, batch = matrices.shape[-1], batch_of(matrices)
    diagonal, sign = matrices.itemsize * n * batch, _permutation_sign(n, batch)
    signs = together(diagonal, matrices.itemsize * batch)
    infos = INFO_BYTES * batch
    return (infos, *lu_factors(matrices), *sign, *signs, *given_back(sign), *together(diagonal), -infos)


def _permutation_sign(n: int, batch: int) -> Temporaries:
    """How many pivots are out of place, counted in int64; the counts stay alive."""
    order, moved, count, as_integers = 4 * n, n * batch, 8 * batch, 8 * n * batch
    return (order, moved, count, as_integers, -as_integers, -moved, -order)


def lu(call: KernelCall) -> Temporaries:
    """The packed factors are taken apart: a copy, pivots and infos."""
    matrices = call.args[0]
    rows, columns = matrices.shape[-2:]
    batch = batch_of(matrices)
    if not call.argument("pivot") or not matrices.numel():
        return ()
    factors = (num_bytes_of(matrices), PIVOT_BYTES * min(rows, columns) * batch, INFO_BYTES * batch)
    return (*factors, *lu_factors(matrices), -factors[0], *_unpacked_pivots(rows, batch), -factors[2], -factors[1])


def lu_unpack(call: KernelCall) -> Temporaries:
    """The permutation of the rows."""
    factors = call.args[0]
    if not call.argument("unpack_pivots") or not factors.numel():
        return ()
    return _unpacked_pivots(factors.shape[-2], batch_of(factors))


def _unpacked_pivots(rows: int, batch: int) -> Temporaries:
    order = INDEX_BYTES * rows
    return together(order) if batch == 1 else (order, order * batch, -order, -order * batch)


def solve_triangular(call: KernelCall) -> Temporaries:
    """The right side is copied into the result."""
    matrices, right = call.args[:2]
    return triangular_solution(matrices.shape[-1], max(batch_of(matrices), batch_of(right))) if right.numel() else ()


def legacy_solve_triangular(call: KernelCall) -> Temporaries:
    """`torch.triangular_solve`, whose first argument is the right side."""
    right, matrices = call.args[:2]
    return triangular_solution(matrices.shape[-1], batch_of(call.out[0])) if right.numel() else ()


def least_squares(call: KernelCall) -> Temporaries | None:
    """Copies of both sides for cuBLAS's batched kernel; single systems go through QR, which has no rule."""
    matrices, right = call.args[:2]
    rows, batch = matrices.shape[-2], batch_of(matrices)
    if rows < matrices.shape[-1] or rows > 256 or batch < max(2, rows // 16):
        return None
    alive = (num_bytes_of(matrices), num_bytes_of(right), *pointers(batch))
    infos = INFO_BYTES * batch
    return (infos, RESULTS, *alive, *given_back(alive), 1, -1, -infos)


def matrix_exponential(call: KernelCall) -> Temporaries:
    """Powers of the matrices and partial sums, LinearAlgebra.cpp, as many as for norms above 2: a bound below."""
    matrices = call.args[0]
    size, batch = num_bytes_of(matrices), batch_of(matrices)
    if matrices.shape[-1] <= 1 or not size:
        return ()
    return together(NUM_POWERS * size, *[size] * (PARTIAL_SUMS_OF_ONE if batch == 1 else PARTIAL_SUMS))


TEMPORARIES: dict[object, Rule] = {
    aten.linalg_lstsq.default: least_squares,
    aten.linalg_matrix_exp.default: matrix_exponential,
    aten.triangular_solve.default: legacy_solve_triangular,
    **dict.fromkeys((aten.linalg_lu_factor_ex.default, aten._lu_with_info.default), lu_factor),
    aten.linalg_lu_solve.default: lu_solve,
    aten._linalg_solve_ex.default: solve,
    aten.linalg_inv_ex.default: inverse,
    aten._linalg_det.default: determinant,
    aten._linalg_slogdet.default: log_determinant,
    aten.linalg_lu.default: lu,
    aten.lu_unpack.default: lu_unpack,
    aten.linalg_solve_triangular.default: solve_triangular,
}
