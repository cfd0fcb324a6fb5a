"""What the gradient of an embedding takes beside its result: ATen/native/cuda/EmbeddingBackwardKernel.cu.

With many indices the rows of the gradient are sorted and summed segment by segment, in float32 whatever the dtype.
Checked against an H100 (torch 2.11+cu130, 2026-11-28, benchmarks/kernels) for 2,048, 4,096 and 16,384 indices.

Limitations:
    Scratch of CUB's sort and scans, 16 bytes an index, is left out: it is freed before the segments are summed, which
    takes more.
"""

import torch

from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

MAX_INDICES_UNSORTED = 3072
ROWS_PER_THREAD = 10
INDEX_BYTES = 8
PARTIAL_SUM_BYTES = 4


def embedding_backward(call: KernelCall) -> Temporaries:
    """The blocks alive while the segments are summed; none for few indices."""
    grad, indices, num_weights = call.args[:3]
    num_indices = indices.numel()
    if num_indices <= MAX_INDICES_UNSORTED:
        return ()
    num_partial = num_indices // ROWS_PER_THREAD + min(num_indices, num_weights)
    per_index = INDEX_BYTES * num_indices
    sorted_and_segments = (per_index, per_index, per_index, INDEX_BYTES, per_index, per_index, INDEX_BYTES)
    partial_sums = (INDEX_BYTES * num_partial, PARTIAL_SUM_BYTES * num_partial * grad.shape[-1])
    return together(*sorted_and_segments, *partial_sums)


TEMPORARIES: dict[object, Rule] = {aten.embedding_dense_backward.default: embedding_backward}
