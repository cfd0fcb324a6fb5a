"""What sort and topk take beside their results: ATen/native/cuda/Sort.cpp, SortStable.cu and TensorTopK.cu.

To the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

import math

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.layouts import is_dense
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

MAX_SMALL_SORT = 4096
MAX_ROW_OF_MODE = 2048
MIN_SEGMENTS_SORTED_AT_ONCE = 128
MIN_ROW_SORTED_ALONE = 1_000_000
INDEX_BYTES = 8
MAX_NO_DUPLICATES = 0.9
# The most rows, and from which row length on topk divides a row among thread blocks.
MULTI_BLOCK_TOPK = ((20, 20_000), (40, 10_000), (80, 8_000), (199, 5_000), (799, 3_000), (4_000, 800))
MULTI_BLOCK_TOPK_MANY_ROWS = 400
TOPK_THREADS = 256
TOPK_BLOCKS_PER_MULTIPROCESSOR = 6
TOPK_ITEMS_PER_THREAD = range(4, 65)


def sort(call: KernelCall) -> Temporaries:
    """The blocks of `sort`."""
    return sorting(call.args[0], call.argument("dim"))


def sorting(tensor: torch.Tensor, dim: int) -> Temporaries:
    """A row of indices for short rows; CUB's buffers, and copies of a tensor whose rows are not in line."""
    if tensor.dim() == 0 or tensor.numel() == 0:
        return ()
    row = tensor.shape[dim]
    if row <= MAX_SMALL_SORT:
        return together(INDEX_BYTES * row)
    in_cub = _in_cub(tensor.numel(), row, tensor.dtype)
    if tensor.stride(dim) == 1 and is_dense(tensor):
        return in_cub
    num_bytes = tensor.numel() * tensor.itemsize
    copies = (num_bytes, num_bytes, INDEX_BYTES * tensor.numel())
    return (*copies, *in_cub, *(-size for size in reversed(copies)))


def _in_cub(num_items: int, row: int, dtype: torch.dtype) -> Temporaries:
    indices, num_rows = INDEX_BYTES * num_items, num_items // row
    if num_rows == 1 or row >= MIN_ROW_SORTED_ALONE:
        scratch = cub.radix_sort(row, dtype, INDEX_BYTES)
        return (INDEX_BYTES * row, *(scratch, -scratch) * num_rows, -INDEX_BYTES * row)
    if num_rows >= MIN_SEGMENTS_SORTED_AT_ONCE:
        return together(indices, cub.segmented_sort(num_items, dtype, INDEX_BYTES))
    by_value = together(num_items * dtype.itemsize, cub.radix_sort(num_items, dtype, INDEX_BYTES))
    by_row = together(cub.radix_sort(num_items, torch.int64, num_bits=(num_rows - 1).bit_length()))
    return (indices, indices, *by_value, *by_row, -indices, -indices)


def topk(call: KernelCall) -> Temporaries:
    """The counters of `topk` over rows that several thread blocks divide, and the sort of more than 4096 results."""
    tensor, k, dim = call.args[0], call.args[1], call.argument("dim")
    if tensor.dim() == 0 or k == 0 or tensor.numel() == 0:
        return ()
    copy = () if tensor.is_contiguous() else (tensor.numel() * tensor.itemsize,)
    counters = _topk_counters(tensor, dim, call.rules.multi_processor_count)
    selecting = (*copy, *counters, *(-size for size in copy))
    values, indices = call.out
    if not call.argument("sorted") or k <= MAX_SMALL_SORT:
        return selecting
    sorted_results = (INDEX_BYTES * indices.numel(), values.numel() * values.itemsize)
    return (*selecting, *sorted_results, *sorting(values, dim), sorted_results[0])


def _topk_counters(tensor: torch.Tensor, dim: int, num_multiprocessors: int) -> Temporaries:
    row = tensor.shape[dim]
    num_rows = tensor.numel() // row
    if row < next((row for most, row in MULTI_BLOCK_TOPK if num_rows <= most), MULTI_BLOCK_TOPK_MANY_ROWS):
        return ()
    resident_threads = num_multiprocessors * TOPK_BLOCKS_PER_MULTIPROCESSOR * TOPK_THREADS
    items = -(-tensor.numel() // resident_threads)
    items = min(max(items, TOPK_ITEMS_PER_THREAD[0]), TOPK_ITEMS_PER_THREAD[-1])
    num_blocks = num_rows * -(-row // (items * TOPK_THREADS))
    desired_bytes = max(4, tensor.itemsize)
    blocks = (
        num_rows * tensor.itemsize, 8 * num_rows, 2 * desired_bytes * num_rows, 2 * cub.RADIX_DIGITS * num_blocks,
        4 * cub.RADIX_DIGITS * num_rows, 4 * num_blocks, 4 * num_blocks,
    )  # fmt: skip
    sums = cub.scan_by_key(num_blocks)
    return (*blocks, sums, -sums, sums, -sums, *(-size for size in reversed(blocks)))


def median(call: KernelCall) -> Temporaries:
    """The median of all elements: they are sorted, and the last one is asked whether it is a number."""
    tensor = call.args[0]
    values, indices = tensor.numel() * tensor.itemsize, INDEX_BYTES * tensor.numel()
    row = tensor.numel()
    if row == 0:
        return ()
    sort_scratch = together(INDEX_BYTES * row) if row <= MAX_SMALL_SORT else _in_cub(row, row, tensor.dtype)
    return (values, indices, *sort_scratch, -indices, 1, RESULTS, -1, -values)


def mode(call: KernelCall) -> Temporaries | None:
    """Rows that are not in line are copied; rows of more than 2048 elements are sorted one by one, without a rule."""
    tensor, dim = call.args[0], call.argument("dim")
    if tensor.dim() == 0 or not tensor.numel():
        return ()
    if tensor.shape[dim] > MAX_ROW_OF_MODE:
        return None
    in_line = dim % tensor.dim() == tensor.dim() - 1 and tensor.is_contiguous()
    return () if in_line else together(tensor.numel() * tensor.itemsize)


def randperm(call: KernelCall) -> Temporaries:
    """Random keys with as few bits as leave duplicates unlikely, ATen/native/cuda/Randperm.cu: they are sorted."""
    count = call.args[0]
    if count < 2:
        return ()
    num_bits = min(64, math.ceil(math.log2(count - (6 * count**2 + 1) / (12 * math.log(MAX_NO_DUPLICATES)))))
    key = torch.int32 if num_bits <= 32 else torch.int64
    keys, range_bytes = key.itemsize * count, call.out.itemsize * count
    return (8, -8, *together(range_bytes, keys, keys, cub.radix_sort(count, key, call.out.itemsize, num_bits)))


TEMPORARIES: dict[object, Rule] = {
    **dict.fromkeys((aten.sort.default, aten.sort.stable), sort),
    **dict.fromkeys((aten.topk.default, aten.topk.values), topk),
    **dict.fromkeys((aten.median.default, aten.nanmedian.default), median),
    aten.mode.default: mode,
    **dict.fromkeys((aten.randperm.default, aten.randperm.generator), randperm),
}
