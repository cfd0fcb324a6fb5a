"""What nonzero, masks, unique and the like take beside their results: they count first, then select with CUB.

Sources: ATen/native/cuda/Nonzero.cu, IndexKernel.cpp, IndexKernel.cu, UniqueCub.cu and
Repeat.cu, ATen/native/TensorCompare.cpp. To the byte what an H200 took
(torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

from collections.abc import Sequence
from math import prod

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, given_back, together
from peaksight.virtual_gpu.tensors.true_counts import most_true

aten = torch.ops.aten

COUNT_BYTES = 4
INDEX_BYTES = 8


def positions(mask: torch.Tensor, num_multiprocessors: int, shape: Sequence[int] | None = None) -> Temporaries:
    """`mask.expand(shape).nonzero()`: all that it takes; its result, an index for each dimension, stays alive."""
    shape = mask.shape if shape is None else shape
    expansion = prod(shape) // max(1, mask.numel())
    result = INDEX_BYTES * most_true(mask) * expansion * max(1, len(shape))
    return tuple(result if size is RESULTS else size for size in _counted(mask, shape, num_multiprocessors))


def _counted(mask: torch.Tensor, shape: Sequence[int], num_multiprocessors: int) -> Temporaries:
    num_items = prod(shape)
    copy = () if _in_line(mask, shape) else (num_items * mask.itemsize,)
    count = cub.reduce(num_items, num_multiprocessors)
    select = together(cub.select(num_items))
    return (*copy, COUNT_BYTES, count, -count, RESULTS, *select, -COUNT_BYTES, *given_back(copy))


def _in_line(tensor: torch.Tensor, shape: Sequence[int]) -> bool:
    """Whether `tensor.expand(shape)` is contiguous."""
    return tensor.is_contiguous() and tensor.numel() == prod(shape)


def nonzero(call: KernelCall) -> Temporaries:
    """A count, then the positions."""
    tensor = call.args[0]
    taken = _counted(tensor, tensor.shape, call.rules.multi_processor_count)
    return taken if tensor.dim() else tuple(size for size in taken if abs(size) <= COUNT_BYTES)


def masked_select(call: KernelCall) -> Temporaries:
    """The positions of the mask, as large as the tensor that it selects from."""
    tensor, mask = call.args[:2]
    shape = torch.broadcast_shapes(tensor.shape, mask.shape)
    return (*positions(mask, call.rules.multi_processor_count, shape), RESULTS)


def masked_scatter(call: KernelCall) -> Temporaries:
    """How many true elements come before each one: a sum along the mask."""
    shape, mask = call.out.shape, call.args[1]
    num_items = prod(shape)
    if num_items == 0:
        return ()
    copy = () if _in_line(mask, shape) else (num_items * mask.itemsize,)
    return together(INDEX_BYTES * num_items, *copy, cub.scan(num_items, torch.int64))


def unique(call: KernelCall) -> Temporaries:
    """A sort, of pairs where the inverse is wanted, then a selection; of truth values, a count."""
    tensor, wants_inverse = call.args[0], call.argument("return_inverse")
    num_items, num_bytes = tensor.numel(), tensor.numel() * tensor.itemsize
    if num_items == 0:
        return ()
    if tensor.dtype == torch.bool:
        count = cub.reduce(num_items, call.rules.multi_processor_count)
        return (COUNT_BYTES, count, -count, RESULTS, -COUNT_BYTES)
    indices = INDEX_BYTES * num_items
    if not wants_inverse:
        return (num_bytes, *together(cub.radix_sort(num_items, tensor.dtype)), RESULTS, *_selected(num_items))
    sort = together(cub.radix_sort(num_items, tensor.dtype, INDEX_BYTES))
    sums = together(indices, cub.scan(num_items, torch.int32))
    return (num_bytes, indices, indices, *sort, -indices, RESULTS, *sums, *_selected(num_items))


def unique_consecutive(call: KernelCall) -> Temporaries | None:
    """Without a sort; along one dimension other algorithms run, of which nothing is known."""
    num_items = call.args[0].numel()
    if call.argument("dim") is not None:
        return None
    if num_items == 0:
        return ()
    steps = COUNT_BYTES * num_items
    sums = together(steps, cub.scan(num_items, torch.int32)) if call.argument("return_inverse") else ()
    return (RESULTS, *sums, *_selected(num_items))


def _selected(num_items: int) -> Temporaries:
    return together(INDEX_BYTES, cub.select(num_items))


def isin(call: KernelCall) -> Temporaries | None:
    """Few values are compared with every element; many are sorted with them, for which there is no rule."""
    elements, tested = call.args[:2]
    num_elements, num_tested = elements.numel(), tested.numel()
    if num_tested >= 10 * num_elements**0.145:
        return None
    return together(num_elements * num_tested, num_elements)


def repeat_interleave(call: KernelCall) -> Temporaries:
    """Where every element's repetitions begin; unless the size is given, that no number of them is negative."""
    repeats = call.args[0]
    num_items = repeats.numel()
    if not num_items:
        return ()
    sums = (INDEX_BYTES * num_items, *together(cub.scan(num_items, torch.int64)))
    checked = () if call.argument("output_size") is not None else together(num_items, 1)
    return (*sums, *checked, RESULTS, -sums[0])


TEMPORARIES: dict[object, Rule] = {
    aten.nonzero.default: nonzero,
    aten.masked_select.default: masked_select,
    aten.masked_scatter.default: masked_scatter,
    aten.masked_scatter_.default: masked_scatter,
    **dict.fromkeys((aten._unique.default, aten._unique2.default), unique),
    aten.unique_consecutive.default: unique_consecutive,
    aten.isin.Tensor_Tensor: isin,
    aten.repeat_interleave.Tensor: repeat_interleave,
}
