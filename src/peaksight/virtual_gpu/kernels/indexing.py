"""What indexing takes beside its results: ATen/native/TensorAdvancedIndexing.cpp and cuda/Indexing.cu.

To the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).

Limitations:
    A tensor without dimensions that is written where a mask is true is taken for a number, wherever it is.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from peaksight.virtual_gpu.kernels import cub
from peaksight.virtual_gpu.kernels.layouts import expanded_strides
from peaksight.virtual_gpu.kernels.reductions import buffers
from peaksight.virtual_gpu.kernels.selecting import INDEX_BYTES, positions
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, given_back, together
from peaksight.virtual_gpu.tensors.true_counts import most_true

aten = torch.ops.aten

MASKS = (torch.bool, torch.uint8)


def index(call: KernelCall) -> Temporaries:
    """The positions of masks, and copies of index tensors from the host or that differ in their strides."""
    indices, num_multiprocessors = call.args[1], call.rules.multi_processor_count
    moved = (each.numel() * each.itemsize for each in indices if _vectors(each) and each.device.type == "cpu")
    return (*_positions(indices, num_multiprocessors), *moved, *_alike(indices), RESULTS)


def index_put(call: KernelCall) -> Temporaries:
    """With `accumulate`, what sorting the indices takes; for a number, which masked_fill_ writes, nothing."""
    indices, values = call.args[1:3]
    masks_found = _positions(indices, call.rules.multi_processor_count)
    if call.argument("accumulate") or torch.are_deterministic_algorithms_enabled():
        return _put_sorted(call, masks_found)
    if values.dim() == 0 and not any(_vectors(each) for each in indices):
        return ()
    return (*masks_found, *_alike(indices))


def _positions(indices: Sequence[Any], num_multiprocessors: int) -> Temporaries:
    masks = [each for each in indices if each is not None and each.dtype in MASKS]
    return tuple(size for mask in masks for size in positions(mask, num_multiprocessors))


def _vectors(indices: torch.Tensor | None) -> bool:
    return indices is not None and indices.dtype not in MASKS


def _shapes(indices: Sequence[Any], num_dims: int) -> list[Sequence[int] | None]:
    """The shape of what indexes each dimension, None for a dimension that is kept."""
    shapes: list[Sequence[int] | None] = []
    for each in indices:
        if each is None or each.dtype not in MASKS:
            shapes.append(None if each is None else each.shape)
        else:
            shapes += [(most_true(each),)] * each.dim()
    return shapes + [None] * (num_dims - len(shapes))


def _alike(indices: Sequence[Any]) -> Temporaries:
    """Copies of the index tensors that are expanded, where the card wants all to have the same strides."""
    tensors = [each for each in indices if _vectors(each)]
    shape = torch.broadcast_shapes(*(each.shape for each in tensors))
    if len({expanded_strides(each, shape) for each in tensors}) <= 1:
        return ()
    copied = (each for each in tensors if not (each.is_contiguous() and each.shape == shape))
    return tuple(prod(shape) * each.itemsize for each in copied)


def _put_sorted(call: KernelCall, masks_found: Temporaries) -> Temporaries:
    tensor, indices, values = call.args[:3]
    shapes = _shapes(indices, tensor.dim())
    indexed = [dim for dim, shape in enumerate(shapes) if shape is not None]
    num_indices = prod(torch.broadcast_shapes(*(shape for shape in shapes if shape is not None)))
    if not num_indices or not tensor.numel() or not indexed:
        return masks_found
    linear = _linear_index(num_indices, len(indexed), _is_checked(call) * call.rules.multi_processor_count)
    is_adjacent = indexed[-1] - indexed[0] == len(indexed) - 1
    kept = [size for size, shape in zip(tensor.shape, shapes, strict=True) if shape is None]
    row = prod(tensor.shape[indexed[-1] + 1 :]) if is_adjacent else prod(kept)
    num_values = num_indices * prod(kept)
    copies = [num_values * values.itemsize] * (values.numel() != num_values or not values.is_contiguous())
    copies += [tensor.numel() * tensor.itemsize] * (not is_adjacent)
    before = [tensor.numel() * tensor.itemsize] * (not tensor.is_contiguous())
    alive = (*before, *masks_found, *linear, *given_back(masks_found), *copies)
    return (*alive, *_sort(num_indices, (tensor.numel() - 1) // row), *given_back(alive))


def _is_checked(call: KernelCall) -> bool:
    """The formula of `index` calls this operator: the forward pass has checked its indices."""
    return call.func is not aten._index_put_impl_.default


def _linear_index(num_indices: int, num_dims: int, num_multiprocessors: int) -> Temporaries:
    """The position of every element, from one index for each dimension; each is checked on so many processors."""
    size = INDEX_BYTES * num_indices
    checked = _extreme(num_indices, num_multiprocessors) * 2 if num_multiprocessors else ()
    first = (*checked, size, size, -size)
    return (*first, *(*first, -size) * (num_dims - 1))


def _extreme(num_indices: int, num_multiprocessors: int) -> tuple[int, ...]:
    staging = together(*buffers([num_indices], [1], [0], num_multiprocessors, INDEX_BYTES))
    return (INDEX_BYTES, *staging, 1, -1, -INDEX_BYTES)


def _sort(num_indices: int, highest: int) -> Temporaries:
    size, num_bits = INDEX_BYTES * num_indices, max(1, highest.bit_length())
    return together(size, size, size, cub.radix_sort(num_indices, torch.int64, INDEX_BYTES, num_bits))


def scatter_reduce(call: KernelCall) -> Temporaries:
    """A mean counts what it adds: ones like the source, counts like the result, and where they are zero."""
    source, reduce = call.argument("src"), call.argument("reduce")
    if reduce != "mean" or not source.numel():
        return ()
    target = call.args[0]
    sizes = (source.numel() * source.itemsize, target.numel() * target.itemsize)
    return together(*sizes, target.numel())


def index_reduce(call: KernelCall) -> Temporaries:
    """A mean counts what it adds: counts like the result, ones like the source, and where the counts are zero."""
    target, source = call.args[0], call.args[3]
    if call.argument("reduce") != "mean" or not source.numel():
        return ()
    counts, ones = (each.numel() * each.itemsize for each in (target, source))
    return (counts, ones, -ones, target.numel(), -target.numel(), -counts)


def bincount(call: KernelCall) -> Temporaries:
    """The lowest and the highest value are read first; weights that are integers are turned into doubles."""
    tensor, weights = call.args[0], call.argument("weights")
    if not tensor.numel():
        return ()
    doubles = [8 * weights.numel()] if weights is not None and not weights.dtype.is_floating_point else []
    extreme = tuple(size for size in _extreme(tensor.numel(), call.rules.multi_processor_count) if abs(size) != 1)
    return (*doubles, *extreme, *extreme, RESULTS, *given_back(doubles))


def roll(call: KernelCall) -> Temporaries:
    """One dimension after the other, each result but the last in a block of its own."""
    num_bytes = call.out.numel() * call.out.itemsize
    before = [num_bytes] * (len(call.argument("dims")) - 1) if num_bytes else []
    return (*before, RESULTS, *given_back(before))


TEMPORARIES: dict[object, Rule] = {
    aten.bincount.default: bincount,
    aten.roll.default: roll,
    **dict.fromkeys((aten.index_reduce.default, aten.index_reduce_.default), index_reduce),
    aten.index.Tensor: index,
    **dict.fromkeys((aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default), index_put),
    **dict.fromkeys((aten.scatter_reduce.two, aten.scatter_reduce_.two), scatter_reduce),
}
