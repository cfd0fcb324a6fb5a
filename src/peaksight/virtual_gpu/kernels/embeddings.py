"""What the gradients of embeddings take beside their results: ATen/native/cuda/EmbeddingBackwardKernel.cu.

The indices are sorted; the rows of one segment of equal indices are summed in parts, in float32 whatever the dtype,
or added atomically where the table is small. To the byte what an H200 took (torch 2.11+cu130, 2026-11-28,
benchmarks/operators).

Limitations:
    With `scale_grad_by_freq` the counts and what counting them takes are left out.
"""

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.layouts import contiguous_copies
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, given_back, together

aten = torch.ops.aten

MAX_INDICES_UNSORTED = 3072
ROWS_PER_PART = 10
SCALAR_BYTES = 8
PARTIAL_SUM_BYTES = 4
MAX_ATOMIC_BLOCKS_PER_MULTIPROCESSOR = 4
MIN_PARTS_PER_ATOMIC_BLOCK = 4
MAX_THREADS = 1024
MAX_MODE = 2


def embedding_backward(call: KernelCall) -> Temporaries:
    """Indices and gradient in one piece, and for few indices no more."""
    grad, indices, num_weights, _, by_frequency = call.args
    copies = contiguous_copies(indices, grad)
    if indices.numel() <= MAX_INDICES_UNSORTED and not by_frequency:
        return together(*copies, RESULTS)
    return together(*copies, *_by_segments(call, grad, indices, num_weights, in_bags=False))


def embedding_bag_backward(call: KernelCall) -> Temporaries | None:
    """Sorted however few the indices are; the maximum of each bag needs no sort."""
    grad, indices = call.args[:2]
    if call.func is aten._embedding_bag_backward.default and call.argument("sparse"):
        return None
    if call.argument("mode") == MAX_MODE or not indices.numel():
        return ()
    return _by_segments(call, grad, indices, call.argument("num_weights"), in_bags=True)


def _by_segments(
    call: KernelCall, grad: torch.Tensor, indices: torch.Tensor, num_weights: int, *, in_bags: bool
) -> Temporaries:
    num_indices, index_bytes = indices.numel(), indices.itemsize
    size, num_segments = index_bytes * num_indices, min(num_indices, num_weights)
    num_parts = num_indices // ROWS_PER_PART + num_segments
    sort = (size, size, size, *together(cub.radix_sort(num_indices, indices.dtype, index_bytes)), -size)
    segments = (size, SCALAR_BYTES, size, *together(cub.select(num_indices, SCALAR_BYTES)), -size)
    offsets = together(cub.scan(num_segments, indices.dtype))
    parts = (index_bytes * num_segments, index_bytes * num_segments, *offsets, SCALAR_BYTES, index_bytes * num_parts)
    width, num_multiprocessors = grad.shape[-1], call.rules.multi_processor_count
    if not in_bags and _adds_atomically(num_segments, num_parts, width, num_multiprocessors):
        in_float32 = [PARTIAL_SUM_BYTES * num_weights * width] * (grad.itemsize < PARTIAL_SUM_BYTES)
        sums = (index_bytes * num_parts, *in_float32)
    else:
        sums = (max(PARTIAL_SUM_BYTES, grad.itemsize) * num_parts * width,)
    alive = (*segments, *parts, *sums)
    return (*sort, RESULTS, *alive, *given_back(alive))


def _adds_atomically(num_segments: int, num_parts: int, width: int, num_multiprocessors: int) -> bool:
    """Whether one block for each segment would leave most of the card idle."""
    threads = -(-width // 32) * 32
    num_blocks = -(-num_segments * threads // min(threads, MAX_THREADS))
    fits = num_blocks < num_multiprocessors * MAX_ATOMIC_BLOCKS_PER_MULTIPROCESSOR
    many_parts = num_parts > num_blocks * MIN_PARTS_PER_ATOMIC_BLOCK
    return fits and many_parts and not torch.are_deterministic_algorithms_enabled()


TEMPORARIES: dict[object, Rule] = {
    aten.embedding_dense_backward.default: embedding_backward,
    aten._embedding_bag_backward.default: embedding_bag_backward,
    aten._embedding_bag_dense_backward.default: embedding_bag_backward,
}
