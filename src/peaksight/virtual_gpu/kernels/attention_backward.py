"""The accumulators that the backward of fused attention takes beside the gradients.

Sources: kernel_backward.h (memory-efficient), flash_api.cpp, and the cases measured on an H100 (torch 2.11+cu130,
2026-11-28, benchmarks/kernels), which these formulas give to the byte. Shapes are (batch, heads, length, head size).

Limitations:
    Flash attention may copy the output and its gradient to another layout; these copies are not counted.
"""

import torch

from peaksight.virtual_gpu.kernels.reductions import div_up
from peaksight.virtual_gpu.kernels.temporaries import Rule, Temporaries, together

aten = torch.ops.aten

FLOAT_BYTES = 4
CUDNN_ALIGNMENT_BYTES = 256
FLASH_ROWS = 128
MAX_KEY_SPLITS = 200


def cudnn_bytes(query: torch.Tensor, key: torch.Tensor) -> int:
    """A float32 gradient of the query, one statistic a row; with grouped heads a key gradient for each query head."""
    batch, heads, length, head_size = query.shape
    grouped = 2 * batch * heads * key.shape[2] * head_size * query.itemsize if key.shape[1] != heads else 0
    return FLOAT_BYTES * batch * heads * length * (head_size + 1) + CUDNN_ALIGNMENT_BYTES + grouped


def flash_bytes(query: torch.Tensor) -> tuple[int, int]:
    """Row sums and the float32 gradient of the query, rows rounded to 128 and heads to 32 or 64 elements."""
    batch, heads, length, head_size = query.shape
    rows = batch * heads * div_up(length, FLASH_ROWS) * FLASH_ROWS
    step = 32 if head_size <= 128 else 64
    return FLOAT_BYTES * rows, FLOAT_BYTES * rows * div_up(head_size, step) * step


def efficient_temporaries(query: torch.Tensor, key: torch.Tensor) -> Temporaries:
    """Row sums, in float32 through a product of the size of the query, then the kernel's workspace beside them."""
    batch, heads, length, head_size = query.shape
    row_sums = FLOAT_BYTES * batch * heads * length
    kernel = together(row_sums, FLOAT_BYTES * batch * heads * _workspace_elements(query, key))
    if query.dtype != torch.float32:
        return kernel
    return (*together(row_sums * head_size, row_sums, row_sums), *kernel)


def _workspace_elements(query: torch.Tensor, key: torch.Tensor) -> int:
    """Float32 elements a head: query gradients by tile; in half beyond 128 elements also those of key and value."""
    batch, heads, length, head_size = query.shape
    rows, columns = _tile(query.dtype, head_size)
    of_query = div_up(length, rows) * div_up(head_size, columns) * (4 + rows * columns)
    if query.dtype == torch.float32 or head_size <= 128:
        return of_query
    splits = max(1, min(div_up(key.shape[2], columns), MAX_KEY_SPLITS // (batch * heads)))
    return of_query + 2 * splits * columns * div_up(head_size, rows) * rows


def _tile(dtype: torch.dtype, head_size: int) -> tuple[int, int]:
    """Rows and columns of the kernel's tile on cards of capability 8.0 and 9.0."""
    if head_size <= 64:
        return 64, 64
    return (128, 128) if dtype != torch.float32 and head_size <= 128 else (128, 64)


TEMPORARIES: dict[object, Rule] = {
    aten._scaled_dot_product_cudnn_attention.default: lambda call: together(CUDNN_ALIGNMENT_BYTES),
    aten._scaled_dot_product_cudnn_attention_backward.default: lambda call: together(cudnn_bytes(*call.args[1:3])),
    aten._scaled_dot_product_flash_attention_backward.default: lambda call: together(*flash_bytes(call.args[1])),
    aten._scaled_dot_product_efficient_attention_backward.default: lambda call: efficient_temporaries(*call.args[1:3]),
}
