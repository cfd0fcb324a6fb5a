"""What histograms and the sums of segments, as of graphs in a batch, take beside their results.

Sources: ATen/native/cuda/SummaryOps.cu, ATen/native/SegmentReduce.cpp and cuda/SegmentReduce.cu; to the byte what an
H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.layouts import contiguous_copies, row_major
from peaksight.virtual_gpu.kernels.reductions import buffers
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

INDEX_BYTES = 8
TRUTH_BYTES = 1
# Of one segmented reduction of CUB over a single row.
REDUCE_BYTES = 1


def histc(call: KernelCall) -> Temporaries:
    """Without a range, the smallest and the largest number first."""
    tensor = call.args[0]
    if call.argument("min") != call.argument("max") or not tensor.numel():
        return ()
    dims, strides = list(range(tensor.dim())), row_major(tensor.shape)
    parts = buffers(tensor.shape, strides, dims, call.rules.multi_processor_count, tensor.itemsize)
    extremum = (*contiguous_copies(tensor), tensor.itemsize, *parts)
    return (RESULTS, *together(*extremum), *together(*extremum))


def segment_reduce(call: KernelCall) -> Temporaries:
    """Segments of a single row are summed by CUB, others by a kernel of PyTorch."""
    data, lengths = call.argument("data"), call.argument("lengths")
    copies = contiguous_copies(data)
    reduced = together(REDUCE_BYTES) if data.dim() == 1 else ()
    if lengths is None:
        sizes = _sizes_of(call.argument("offsets"))
        return (*copies, RESULTS, sizes, *reduced, -sizes, *(-copy for copy in copies))
    checked = () if call.argument("unsafe") else _checked()
    offsets = _offsets_of(lengths)
    return (*copies, *checked, RESULTS, *offsets, *reduced, -offsets[1], *(-copy for copy in copies))


def segment_reduce_backward(call: KernelCall) -> Temporaries:
    """The bounds of the segments again."""
    copies = contiguous_copies(*map(call.argument, ("grad", "output", "data")))
    if call.argument("lengths") is None:
        return (*copies, RESULTS, *together(_sizes_of(call.argument("offsets"))))
    offsets = _offsets_of(call.argument("lengths"))
    return (*copies, RESULTS, *offsets, -offsets[1])


def _checked() -> Temporaries:
    """That no length is negative, and that together they are as long as the data."""
    return (INDEX_BYTES, -INDEX_BYTES, *together(INDEX_BYTES, TRUTH_BYTES, TRUTH_BYTES))


def _sizes_of(offsets: torch.Tensor) -> int:
    return INDEX_BYTES * (offsets.numel() - 1)


def _offsets_of(lengths: torch.Tensor) -> Temporaries:
    """Where each segment begins, from a zero on, and where the last ends: a sum along the lengths."""
    count = lengths.numel()
    return (INDEX_BYTES, INDEX_BYTES * (count + 1), -INDEX_BYTES, *together(cub.scan(count, torch.int64)))


TEMPORARIES: dict[object, Rule] = {
    aten.histc.default: histc,
    aten.segment_reduce.default: segment_reduce,
    aten._segment_reduce_backward.default: segment_reduce_backward,
}
