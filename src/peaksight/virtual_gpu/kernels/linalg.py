"""What cuSOLVER takes for batches of small symmetric matrices, measured on an H100 (torch 2.11+cu130, 2026-11-28).

`torch.linalg.eigh` on float32 batches of at most 32 x 32 goes to cusolverDnXsyevBatched. Its workspace for n = 9, 19
and 32 (benchmarks/kernels) is, to the byte, the polynomial below.
"""

import torch

from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

MAX_BATCHED_N = 32
FLAG_BYTES = 1


def eigh(call: KernelCall) -> Temporaries | None:
    """The blocks that eigh holds beside its results."""
    matrices = call.args[0]
    n, batch = matrices.shape[-1], matrices.shape[:-2].numel()
    if matrices.dtype != torch.float32 or not 0 < n <= MAX_BATCHED_N or batch < 2:
        return None
    copy_bytes, info_bytes = 4 * batch * n * n, 4 * batch
    return together(copy_bytes, info_bytes, xsyev_batched_bytes(n, batch), FLAG_BYTES)


def xsyev_batched_bytes(n: int, batch: int) -> int:
    """The device workspace of cusolverDnXsyevBatched for `batch` float32 matrices of n x n, n at most 32."""
    per_matrix = 262_160 + 3_068 * n + 12 * n * n
    return batch * per_matrix + 256


TEMPORARIES: dict[object, Rule] = {aten._linalg_eigh.default: eigh}
