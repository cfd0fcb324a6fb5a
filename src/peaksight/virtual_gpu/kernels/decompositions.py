"""What cuSOLVER takes for Cholesky, QR, singular values and eigenvalues: ATen/native/cuda/linalg.

Its workspaces are fitted to what an H100 and an H200 took for float32 (torch 2.11+cu130, 2026-11-28,
benchmarks/kernels, benchmarks/operators) for n of 4 to 64, 256, 300, 513 and 1024; other types are not known.

Limitations:
    Cholesky: a bound. Singular values of more than 32 x 32: at most 256 KiB from the truth, and within 0.2% from
    256 x 256 on. Eigenvalues: to the byte up to 64 x 64, within 0.3% from 256 x 256 to 512 x 512, no rule above.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.units import KIB
from peaksight.virtual_gpu.kernels.linalg import INFO_BYTES, POINTER_BYTES, batch_of, num_bytes_of, pointers
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

MAX_BATCHED_N = 32
MAX_JACOBI_N = 512
QR_PANEL = 512


def cholesky(call: KernelCall) -> Temporaries:
    """One by one in cuSOLVER, several in its batched kernel."""
    matrices = call.args[0]
    batch, n = batch_of(matrices), matrices.shape[-1]
    if not matrices.numel():
        return ()
    return together((160 + 4 * n) * matrices.itemsize // 4 if batch == 1 else POINTER_BYTES * batch)


def _checked(batch: int) -> Temporaries:
    """Whether any decomposition failed."""
    return (1, 1, -1, -1) if batch == 1 else (1, -1)


def cholesky_solution(call: KernelCall) -> Temporaries:
    """A copy of the factor."""
    factor = call.args[1] if call.func is aten._cholesky_solve_helper.default else call.args[0]
    infos = [INFO_BYTES] if batch_of(factor) == 1 else []
    return together(num_bytes_of(factor), *infos)


def qr(call: KernelCall) -> Temporaries | None:
    """Householder vectors, then Q made of them; R needs only the vectors."""
    matrices, mode = call.args[0], call.argument("mode")
    if matrices.dtype != torch.float32:
        return None
    rows, columns = matrices.shape[-2:]
    batch = batch_of(matrices)
    scales = 4 * min(rows, columns) * batch
    vectors = householder_vectors(rows, columns, batch)
    return (scales, *vectors, *(() if mode == "r" else _products(columns, batch)), -scales)


def geqrf(call: KernelCall) -> Temporaries | None:
    """The Householder vectors of QR."""
    matrices = call.args[0]
    rows, columns = matrices.shape[-2:]
    return householder_vectors(rows, columns, batch_of(matrices)) if matrices.dtype == torch.float32 else None


def householder_vectors(rows: int, columns: int, batch: int) -> Temporaries:
    """Many small matrices in a batched kernel of cuBLAS, others one by one."""
    if rows <= 256 and batch >= max(2, rows // 16):
        return pointers(batch)
    workspace = 4 * KIB * (max(256, rows, columns) + QR_PANEL) + 128
    return _one_by_one(workspace, batch)


def householder_product(call: KernelCall) -> Temporaries | None:
    """Q from its Householder vectors."""
    vectors = call.args[0]
    if vectors.dtype != torch.float32:
        return None
    return _products(vectors.shape[-1], batch_of(vectors)) if call.args[1].numel() else ()


def _products(columns: int, batch: int) -> Temporaries:
    workspace = 129 * KIB + _padded(4 * columns**2, 128) if columns <= 128 else 65 * KIB + 1536 * columns
    return _one_by_one(workspace, batch)


def _one_by_one(workspace: int, batch: int) -> Temporaries:
    return (INFO_BYTES, *(workspace, -workspace) * batch, -INFO_BYTES)


def svd(call: KernelCall) -> Temporaries | None:
    """A copy of the matrices, and the workspace of the Jacobi method."""
    matrices = call.args[0]
    rows, columns = matrices.shape[-2:]
    largest, batch = max(rows, columns), batch_of(matrices)
    is_fitted = matrices.dtype == torch.float32 and call.argument("driver") is None
    if not is_fitted or (rows != columns and largest > MAX_BATCHED_N):
        return None
    if not matrices.numel():
        return ()
    vectors = [] if call.argument("compute_uv") else [4 * rows**2 * batch, 4 * columns**2 * batch]
    square = [] if rows == columns else [4 * largest**2 * batch]
    workspace = 3968 if largest <= MAX_BATCHED_N else 8 * largest**2 + max(20_992, 280 * _padded(largest, 32) + 128)
    working = together(*vectors, num_bytes_of(matrices), *square, workspace)
    return (INFO_BYTES * batch, *working, *_checked(batch))


def _padded(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def eigh(call: KernelCall) -> Temporaries | None:
    """Small matrices in one batch, larger ones one by one."""
    matrices = call.args[0]
    n, batch = matrices.shape[-1], batch_of(matrices)
    if not matrices.numel():
        return ()
    if matrices.dtype != torch.float32 or n > MAX_JACOBI_N:
        return None
    infos, vectors = INFO_BYTES * batch, [] if call.argument("compute_v") else [num_bytes_of(matrices)]
    if n <= MAX_BATCHED_N:
        return (*vectors, RESULTS, infos, *together(xsyev_batched_bytes(n, batch)), *_checked(batch))
    workspace = 4 * n**2 + 4 * n + max(12_360, 149 * _padded(n, 32))
    return (*vectors, RESULTS, infos, *(workspace, -workspace) * batch, *_checked(batch))


def xsyev_batched_bytes(n: int, batch: int) -> int:
    """The device workspace of cusolverDnXsyevBatched for `batch` float32 matrices of n x n, n at most 32."""
    matrices, scalars = 4 * batch * n**2, 4 * batch
    padding = _padded(matrices, 32) - matrices + 3 * (_padded(scalars, 32) - scalars)
    return batch * (262_160 + 3_068 * n + 12 * n**2) + padding + 256


def _fake_geqrf(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    matrices = args[0]
    with mode:
        return torch.empty_like(matrices), matrices.new_empty(*matrices.shape[:-2], min(matrices.shape[-2:]))


def _fake_lstsq(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    """The solution; residuals of more equations than unknowns; no rank and no singular values on the card."""
    matrices, right = args[:2]
    is_vector = matrices.dim() - 1 == right.dim()
    rows, columns = matrices.shape[-2:]
    batch = torch.broadcast_shapes(matrices.shape[:-2], right.shape[: -1 if is_vector else -2])
    width = () if is_vector else right.shape[-1:]
    with mode:
        solution = matrices.new_empty(*batch, max(rows, columns), *width).narrow(len(batch), 0, columns)
        residuals = matrices.new_empty((*batch, *width) if rows > columns else (0,))
        return solution, residuals, matrices.new_empty(0, dtype=torch.int64), matrices.new_empty(0)


FAKE_KERNELS: dict[str, Callable[..., Any]] = {"aten::geqrf": _fake_geqrf, "aten::linalg_lstsq": _fake_lstsq}
TEMPORARIES: dict[object, Rule] = {
    aten.linalg_cholesky_ex.default: cholesky,
    aten._cholesky_solve_helper.default: cholesky_solution,
    aten.cholesky_inverse.default: cholesky_solution,
    aten.linalg_qr.default: qr,
    aten.geqrf.default: geqrf,
    aten.linalg_householder_product.default: householder_product,
    aten._linalg_svd.default: svd,
    aten._linalg_eigh.default: eigh,
}
