"""What attention kernels take beside their results in the forward pass. Shapes are (batch, heads, length, head size).

Sources: mha_fwd of flash_attn/flash_api.cpp, mem_eff_attention/kernel_forward.h, and the cases measured on an H100 and
an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/kernels and benchmarks/operators), which these rules give to the byte.
"""

import math
from collections.abc import Sequence

import torch

from peaksight.virtual_gpu.kernels.reductions import div_up
from peaksight.virtual_gpu.kernels.sdpa_choice import HALF
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

FLOAT_BYTES = 4
CUDNN_WORKSPACE_BYTES = 256
PHILOX_BYTES = 16
# Flash attention splits the keys until this share of the best use of the multiprocessors is reached.
GOOD_ENOUGH = 0.85
MAX_SPLITS = 128
# Up to this head size the memory-efficient kernel accumulates its output in registers.
IN_REGISTERS = 128


def cudnn(call: KernelCall) -> Temporaries:
    """A single query takes a kernel without a workspace."""
    return together(CUDNN_WORKSPACE_BYTES) if call.args[0].shape[2] > 1 else ()


def flash(call: KernelCall) -> Temporaries:
    """The random state of dropout, or what splitting the keys takes."""
    if call.argument("dropout_p"):
        return together(PHILOX_BYTES)
    return _split(call.args[0].shape, call.args[1].shape, call.rules.multi_processor_count)


def flash_by_rows(call: KernelCall) -> Temporaries:
    """The same kernel with shapes of (batch, length, heads, head size), or packed sequences, whose keys stay whole."""
    if call.argument("dropout_p"):
        return together(PHILOX_BYTES)
    if call.argument("cum_seq_q") is not None:
        return ()
    query, key = ((batch, heads, length, size) for batch, length, heads, size in (t.shape for t in call.args[:2]))
    return _split(query, key, call.rules.multi_processor_count)


def _split(query: Sequence[int], key: Sequence[int], multi_processor_count: int) -> Temporaries:
    """Where the queries alone leave multiprocessors idle: one output and one statistic in float32 for each split."""
    batch, heads, length, head_size = query
    if length == 1 and heads > key[1]:
        heads, length = key[1], heads // key[1]  # the query heads of a key head become its queries
    splits = num_splits(batch * heads, length, key[2], head_size, multi_processor_count)
    if splits == 1:
        return ()
    rows = FLOAT_BYTES * splits * batch * heads * length
    return (rows, rows * rounded_head(head_size), -rows, -rows * rounded_head(head_size))


def num_splits(batch_heads: int, queries: int, keys: int, head_size: int, multi_processor_count: int) -> int:
    """`num_splits_heuristic` of flash attention: two blocks of 64 queries run on a multiprocessor at a time."""
    key_block = 256 if head_size <= 64 else 128 if head_size <= 128 else 64
    blocks, at_once, key_blocks = batch_heads * div_up(queries, 64), 2 * multi_processor_count, div_up(keys, key_block)
    if blocks >= 0.8 * at_once:
        return 1
    splits = [1] + [n for n in range(2, min(MAX_SPLITS, at_once, key_blocks) + 1) if _differs(key_blocks, n)]
    waves = [blocks * n / at_once for n in splits]
    efficiency = [wave / math.ceil(wave) for wave in waves]
    return next(n for n, e in zip(splits, efficiency, strict=True) if e >= GOOD_ENOUGH * max(efficiency))


def _differs(key_blocks: int, splits: int) -> bool:
    return div_up(key_blocks, splits) != div_up(key_blocks, splits - 1)


def rounded_head(head_size: int) -> int:
    """The head size that flash attention lays its float32 accumulators out for."""
    return div_up(head_size, 32) * 32 if head_size <= 192 else 256


def efficient(call: KernelCall) -> Temporaries:
    """Large heads in half precision: the output in float32."""
    query, value = call.args[0], call.args[2]
    if query.dtype not in HALF or max(query.shape[3], value.shape[3]) <= IN_REGISTERS:
        return ()
    return together(FLOAT_BYTES * math.prod(query.shape[:3]) * value.shape[3])


def safe_softmax(call: KernelCall) -> Temporaries:
    """Which scores are -inf, which rows are so throughout, and the zero that those get."""
    scores, dim = call.args[:2]
    return together(scores.numel(), scores.numel() // max(scores.shape[dim], 1), call.out.itemsize)


TEMPORARIES: dict[object, Rule] = {
    aten._scaled_dot_product_cudnn_attention.default: cudnn,
    aten._scaled_dot_product_flash_attention.default: flash,
    aten._scaled_dot_product_efficient_attention.default: efficient,
    aten._flash_attention_forward.default: flash_by_rows,
    aten._efficient_attention_forward.default: efficient,
    aten._safe_softmax.default: safe_softmax,
}
