"""Which of CUDA's libraries an operator calls.

Sources: ATen/cuda/CublasHandlePool.cpp, ATen/cudnn/Handle.cpp and ATen/cuda/CUDASolverHandlePool.cpp: each thread takes
its handle of a library at the first operator that needs it.

Limitations:
    cuFFT, cuSPARSE and MAGMA are not counted: none of the measured trainings calls them. Nor are side streams: those of
    FSDP take less than the 2 MiB in which nvidia-smi counts.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.cublas import GEMMS
from peaksight.virtual_gpu.kernels.known_operators import family
from peaksight.virtual_gpu.kernels.linalg import batch_of
from peaksight.virtual_gpu.kernels.temporaries import KernelCall
from peaksight.virtual_gpu.kernels.torch_private import suggest_memory_format
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

KERNELS, CUBLAS, CUDNN, CUSOLVER = "kernels", "cublas", "cudnn", "cusolver"
Condition = Callable[[KernelCall], bool]


def _always(call: KernelCall) -> bool:
    return True


def launches(call: KernelCall) -> bool:
    """Whether a kernel of PyTorch runs: not for views, empty tensors and copies from the host."""
    copied = call.args[COPIED[call.func]] if call.func in COPIED else None
    return copied is None or (isinstance(copied, FakeTensor) and copied.fake_device.type == "cuda")


def _convolves(call: KernelCall) -> bool:
    """cuDNN, but for depthwise convolutions whose channels do not come last, ATen/native/Convolution.cpp."""
    input, weight, groups = (call.argument(name) for name in ("input", "weight", "groups"))
    is_depthwise = 1 < groups == input.shape[1] and input.dim() > 3 and not call.argument("transposed")
    formats = suggest_memory_format(input), suggest_memory_format(weight)
    by_channels = any(layout is not torch.contiguous_format for layout in formats)
    return torch.backends.cudnn.enabled and (by_channels or not is_depthwise)


def _is_one_matrix(call: KernelCall) -> bool:
    return batch_of(call.args[0]) == 1


def _is_batch(call: KernelCall) -> bool:
    return not _is_one_matrix(call)


COPIED = {aten._to_copy.default: 0, aten.copy_.default: 1}
RUNS_NO_KERNEL = frozenset(
    "aten::_efficientzerotensor aten::_unsafe_view aten::empty aten::empty_like aten::empty_permuted "
    "aten::empty_strided aten::resize aten::set".split()
)
PRODUCTS = (*GEMMS, aten._int_mm.default, aten._scaled_mm.default)
TRIANGULAR = (aten.linalg_solve_triangular.default, aten.triangular_solve.default)
CONVOLUTIONS = (aten.convolution.default, aten.convolution_backward.default)
OF_CUDNN = (
    aten._cudnn_rnn.default,
    aten._cudnn_rnn_backward.default,
    aten._cudnn_rnn_flatten_weight.default,
    aten._scaled_dot_product_cudnn_attention.default,
    aten._scaled_dot_product_cudnn_attention_backward.default,
    aten.cudnn_batch_norm.default,
    aten.cudnn_batch_norm_backward.default,
)
DECOMPOSITIONS = (
    aten._cholesky_solve_helper.default,
    aten._linalg_eigh.default,
    aten._linalg_svd.default,
    aten.cholesky_inverse.default,
    aten.geqrf.default,
    aten.linalg_cholesky_ex.default,
    aten.linalg_eig.default,
    aten.linalg_householder_product.default,
    aten.linalg_ldl_factor_ex.default,
    aten.linalg_ldl_solve.default,
    aten.linalg_lstsq.default,
    aten.linalg_qr.default,
    aten.ormqr.default,
)
# One matrix is factored by cuSOLVER, a batch by cuBLAS.
FACTORS = (
    aten._linalg_det.default,
    aten._linalg_slogdet.default,
    aten._linalg_solve_ex.default,
    aten.linalg_inv_ex.default,
    aten.linalg_lu.default,
    aten.linalg_lu_factor_ex.default,
    aten.linalg_lu_solve.default,
)
USES: tuple[tuple[tuple[Any, ...], str, Condition], ...] = (
    (PRODUCTS + TRIANGULAR, CUBLAS, _always),
    (FACTORS, CUBLAS, _is_batch),
    (FACTORS, CUSOLVER, _is_one_matrix),
    (DECOMPOSITIONS, CUSOLVER, _always),
    (OF_CUDNN, CUDNN, _always),
    (CONVOLUTIONS, CUDNN, _convolves),
)


@cache
def libraries_of(func: Any) -> tuple[tuple[str, Condition], ...]:
    """What `func` may call, each with the condition under which one call does; empty when it runs no kernel."""
    if not isinstance(func, torch._ops.OpOverload) or func.is_view or family(func) in RUNS_NO_KERNEL:
        return ()
    return ((KERNELS, launches), *((library, condition) for funcs, library, condition in USES if func in funcs))
