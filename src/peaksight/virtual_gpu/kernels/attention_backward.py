"""What the backward of fused attention takes beside the gradients. Shapes are (batch, heads, length, head size).

Sources: ATen/native/transformers/cuda/attention_backward.cu, mem_eff_attention/kernel_backward.h with its list of
kernels (cutlassB.h), mha_bwd of flash_attn/flash_api.cpp, and the cases measured on an H100 and an H200 (torch
2.11+cu130, 2026-11-28, benchmarks/kernels and benchmarks/operators), which these rules give to the byte.

Limitations:
    The workspace of cuDNN is that of Hopper; on other cards it is taken to be the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.attention_forward import FLOAT_BYTES, rounded_head
from peaksight.virtual_gpu.kernels.layouts import contiguous_copies
from peaksight.virtual_gpu.kernels.reductions import div_up
from peaksight.virtual_gpu.kernels.sdpa_choice import HALF
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

CUDNN_ALIGNMENT_BYTES = 256
FLASH_ROWS = 128
# With this many heads of the batch and few keys the memory-efficient kernel has work enough without splitting them.
ENOUGH_HEADS = 256
MAX_ACCUMULATING_SPLITS = 200
UNLIMITED = 1 << 16


def cudnn(call: KernelCall) -> Temporaries:
    """A gradient of the output that is no plain row is laid out as the output, then cuDNN's workspace."""
    grad_out, query, key, value = call.args[:4]
    copied = grad_out.nbytes if grad_out.stride(-1) != 1 else 0
    return (RESULTS, *together(*_existing(copied), cudnn_bytes(query, key, value)))


def cudnn_bytes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> int:
    """A float32 gradient of the query, one statistic a row; of grouped heads the gradients for each query head."""
    batch, heads, length, head_size = query.shape
    grouped = sum(heads * t.nbytes // t.shape[1] for t in (key, value) if t.shape[1] != heads)
    return FLOAT_BYTES * batch * heads * length * (head_size + 1) + CUDNN_ALIGNMENT_BYTES + grouped


def flash(call: KernelCall) -> Temporaries:
    """The kernel below, with heads before rows."""
    grad_out, query, key, _, out = call.args[:5]
    copies = [t.nbytes for t in (grad_out, out) if not _lies_in_rows(t)]
    return _flash(copies, query.shape[1], key.shape[1], key.nbytes, flash_bytes(query.shape, call.rules))


def flash_by_rows(call: KernelCall) -> Temporaries:
    """Shapes are (batch, length, heads, head size); (words, heads, head size) where sequences are packed."""
    grad_out, query, key, _, out, _, sequences = call.args[:7]
    heads, head_size = query.shape[-2:]
    if sequences is None:
        accumulators = flash_bytes((query.shape[0], heads, query.shape[1], head_size), call.rules)
    else:
        accumulators = packed_flash_bytes(query.shape, sequences.shape[0] - 1, call.rules)
    return _flash(contiguous_copies(grad_out, out), heads, key.shape[-2], key.nbytes, accumulators)


def _flash(
    copies: list[int], heads: int, key_heads: int, key_bytes: int, accumulators: tuple[int, int]
) -> Temporaries:  # fmt: skip
    """The output and its gradient row by row, then the accumulators, for grouped heads a key gradient a query head."""
    of_keys = heads * key_bytes // key_heads
    expanded = (of_keys, of_keys) if heads != key_heads else ()
    return together(*copies, RESULTS, *accumulators, *expanded)


def flash_bytes(query: Sequence[int], rules: DeviceRules) -> tuple[int, int]:
    """Row sums and the float32 gradient of the query, whose rows are rounded up."""
    batch, heads, length, head_size = query
    return _accumulators(batch * heads, div_up(length, FLASH_ROWS) * FLASH_ROWS * batch * heads, head_size, rules)


def packed_flash_bytes(query: Sequence[int], num_sequences: int, rules: DeviceRules) -> tuple[int, int]:
    """The same for packed sequences, each of which may need the rows of one block more."""
    words, heads, head_size = query
    return _accumulators(num_sequences * heads, (words + FLASH_ROWS * num_sequences) * heads, head_size, rules)


def _accumulators(batch_heads: int, rows: int, head_size: int, rules: DeviceRules) -> tuple[int, int]:
    """A deterministic run has a gradient for each of the splits that fill the card, and adds them later."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    splits = div_up(rules.multi_processor_count, batch_heads) if deterministic else 1
    return FLOAT_BYTES * rows, FLOAT_BYTES * rows * rounded_head(head_size) * splits


class Kernel(NamedTuple):
    """One of the memory-efficient kernels: its tile, and the largest head it is for."""

    queries: int
    keys: int
    max_head: int


def kernel_for(dtype: torch.dtype, head_size: int, rules: DeviceRules) -> Kernel:
    """The first kernel of cutlassB.h that takes the head; with little shared memory, of the smaller tile."""
    return next(kernel for kernel in _kernels(dtype, rules.capability) if head_size <= kernel.max_head)


def _kernels(dtype: torch.dtype, capability: tuple[int, int]) -> tuple[Kernel, ...]:
    small = (Kernel(64, 64, 32), Kernel(64, 64, 64))
    large = Kernel(128, 64, UNLIMITED)
    if capability < (8, 0):
        return (*small, Kernel(128, 64, 128), large) if dtype in HALF else (*small, Kernel(64, 64, UNLIMITED))
    if capability in ((8, 6), (8, 9), (12, 0), (12, 1)):  # 99 KiB of shared memory a block, against 163 and more
        middle = (Kernel(128, 64, 96),) if dtype in HALF and capability < (9, 0) else ()
        return (*small, *middle, Kernel(64, 64, 128), Kernel(64, 64, UNLIMITED))
    return (*small, Kernel(128, 128, 128), large) if dtype in HALF else (*small, large)


def efficient(call: KernelCall) -> Temporaries:
    """The kernel below, with heads before rows."""
    grad_out, query, key, value = call.args[:4]
    copied = 0 if _lies_in_rows(grad_out) else grad_out.nbytes
    return _efficient(copied, query, key, value, call.rules)


def efficient_by_rows(call: KernelCall) -> Temporaries:
    """Shapes are (batch, length, heads, head size)."""
    query, key, value = (_heads_first(tensor) for tensor in call.args[1:4])
    return _efficient(sum(contiguous_copies(call.args[0])), query, key, value, call.rules)


class Operand(NamedTuple):
    """What a rule looks at of a query, key or value."""

    shape: Sequence[int]
    dtype: torch.dtype


def _heads_first(tensor: torch.Tensor) -> Operand:
    batch, length, heads, head_size = tensor.shape
    return Operand((batch, heads, length, head_size), tensor.dtype)


def _lies_in_rows(tensor: torch.Tensor) -> bool:
    """Whether it would be contiguous with its rows before its heads."""
    _, heads, length, head_size = tensor.shape
    wanted = (heads * length * head_size, head_size, heads * head_size, 1)
    strides = zip(tensor.shape, tensor.stride(), wanted, strict=True)
    return all(size == 1 or stride == in_rows for size, stride, in_rows in strides)


def _efficient(copied: int, query: Any, key: Any, value: Any, rules: DeviceRules) -> Temporaries:
    """The gradient of the output row by row, the products of output and gradient, and the kernel's workspace."""
    kernel = kernel_for(query.dtype, max(query.shape[3], value.shape[3]), rules)
    computed, row_sums = _row_sums(query, value, kernel, rules)
    workspace = workspace_bytes(query, key, value, kernel)
    return (*_existing(copied), RESULTS, *computed, workspace, -row_sums, -workspace, *_existing(-copied))


def _row_sums(query: Any, value: Any, kernel: Kernel, rules: DeviceRules) -> tuple[Temporaries, int]:
    """How one float a query comes about, and its bytes: in half precision most kernels compute it themselves."""
    batch, heads, length, _ = query.shape
    row_sums = FLOAT_BYTES * batch * heads * length
    on_volta = (7, 0) <= rules.capability < (7, 5)
    if query.dtype in HALF and (kernel.max_head <= kernel.queries or not on_volta):
        return (row_sums,), row_sums
    products = row_sums * value.shape[3]
    casts = () if query.dtype == torch.float32 else (products, products)
    transposed = (row_sums,) if heads > 1 and length > 1 else ()
    freed = (-row_sums,) if transposed else ()
    return (*casts, products, row_sums, *transposed, *freed, -products, *(-size for size in casts)), row_sums


def workspace_bytes(query: Any, key: Any, value: Any, kernel: Kernel) -> int:
    """Query gradients by tile; of a half precision head too large for the registers also key and value gradients."""
    batch, heads, length, head_size = query.shape
    tiles = div_up(length, kernel.queries) * div_up(head_size, kernel.keys)
    elements = tiles * (4 + kernel.queries * kernel.keys)
    if query.dtype in HALF and kernel.max_head > kernel.queries:
        widths = sum(div_up(size, kernel.queries) * kernel.queries for size in (head_size, value.shape[3]))
        elements += _key_splits(batch * heads, key.shape[2], kernel) * kernel.keys * widths
    return FLOAT_BYTES * batch * heads * div_up(elements, 4) * 4


def _key_splits(batch_heads: int, keys: int, kernel: Kernel) -> int:
    if torch.are_deterministic_algorithms_enabled() or (batch_heads >= ENOUGH_HEADS and keys <= 2 * kernel.keys):
        return 1
    return max(1, min(div_up(keys, kernel.keys), MAX_ACCUMULATING_SPLITS // batch_heads))


def _existing(num_bytes: int) -> tuple[int, ...]:
    return (num_bytes,) if num_bytes else ()


TEMPORARIES: dict[object, Rule] = {
    aten._scaled_dot_product_cudnn_attention_backward.default: cudnn,
    aten._scaled_dot_product_flash_attention_backward.default: flash,
    aten._scaled_dot_product_efficient_attention_backward.default: efficient,
    aten._flash_attention_backward.default: flash_by_rows,
    aten._efficient_attention_backward.default: efficient_by_rows,
}
