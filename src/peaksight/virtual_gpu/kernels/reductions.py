"""The staging buffer of a reduction that is split over thread blocks: ATen/native/cuda/Reduce.cuh.

A sum over many rows with few outputs (the gradient of a bias) is divided among thread blocks, which leave their
partial results in a buffer from the caching allocator, beside one semaphore for each column of blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.accumulators import ACCUMULATORS, LOW_PRECISION, OF_ALL, SUMS, TRUTHS, sum_bytes
from peaksight.virtual_gpu.kernels.layouts import contiguous_copies, row_major, strides_of_copy
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

MAX_NUM_THREADS = 512
WARP_SIZE = 32
VECTOR = 4
MIN_VALUES_PER_THREAD = 16
MAX_VALUES_PER_THREAD = 256
SEMAPHORE_BYTES = 4
MAX_INDEX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Split:
    """How a reduction is divided: the bytes of its buffer and of its semaphores, both 0 when one block does it."""

    buffer_bytes: int = 0
    semaphore_bytes: int = 0


def div_up(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def last_pow2(n: int) -> int:
    """The largest power of two that is at most `n`, 1 for 0."""
    return 1 << (max(n, 1).bit_length() - 1)


def coalesced(shape: Sequence[int], strides: Sequence[int], dims: list[int]) -> list[tuple[int, int]]:
    """(size, stride) of `dims` by ascending stride, neighbours that lie one behind the other taken as one."""
    merged: list[tuple[int, int]] = []
    for stride, size in sorted((strides[d], shape[d]) for d in dims if shape[d] != 1):
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * size, merged[-1][1])
        else:
            merged.append((size, stride))
    return merged


def split_reduction(
    shape: Sequence[int], strides: Sequence[int], dims: list[int], num_multiprocessors: int,
    accumulator_bytes: int = 4,
) -> Split:  # fmt: skip
    """How the card divides the reduction of a tensor (`strides` in elements) over `dims`."""
    reduced = coalesced(shape, strides, dims)
    kept = coalesced(shape, strides, [d for d in range(len(shape)) if d not in dims])
    num_inputs, num_outputs = prod(size for size, _ in reduced), prod(size for size, _ in kept)
    if not reduced or num_inputs == 0 or num_outputs == 0:
        return Split()
    along_input = not kept or reduced[0][1] < kept[0][1]
    vector = 1 if along_input else _output_vector(kept, reduced)
    dim0, dim1 = (num_inputs, num_outputs) if along_input else (num_outputs, num_inputs)
    fastest = reduced[0][1] if along_input else kept[0][1]
    if fastest == 1 and along_input and dim0 > 128 and not kept and len(reduced) == 1:
        dim0 //= VECTOR
    elif fastest == 1 and not along_input:
        dim0 //= vector
    else:
        vector = 1
    width, height = _block(dim0, dim1, MAX_NUM_THREADS // vector)
    return _divide(num_inputs, num_outputs, width, height, vector, along_input, num_multiprocessors, accumulator_bytes)


def _output_vector(kept: list[tuple[int, int]], reduced: list[tuple[int, int]]) -> int:
    vector = VECTOR
    for number in (kept[0][0], *(stride for _, stride in (*reduced, *kept[1:]))):
        while number % vector:
            vector //= 2
    return vector


def _block(dim0: int, dim1: int, max_threads: int) -> tuple[int, int]:
    """Threads of a block across the fastest and the other dimension."""
    width_wanted = min(last_pow2(dim0), max_threads)
    height_wanted = min(last_pow2(dim1), max_threads)
    width = min(width_wanted, WARP_SIZE)
    height = min(height_wanted, max_threads // width)
    return min(width_wanted, max_threads // height), height


def _divide(
    num_inputs: int, num_outputs: int, width: int, height: int, vector: int, along_input: bool,
    num_multiprocessors: int, accumulator_bytes: int,
) -> Split:  # fmt: skip
    step_input, step_output = (width, 1) if along_input else (1, width)
    values = div_up(num_inputs, step_input)
    splits_rows = values >= min(height * 16, MAX_VALUES_PER_THREAD)
    if splits_rows:
        step_input *= height
    else:
        step_output *= height
    values = div_up(num_inputs, step_input)
    columns = div_up(num_outputs // vector, step_output)
    target = num_multiprocessors * (2048 // (width * height))
    if not splits_rows or values < MAX_VALUES_PER_THREAD or columns > target:
        return Split()
    blocks = max(
        min(div_up(target, columns), div_up(values, MIN_VALUES_PER_THREAD)), div_up(values, MAX_VALUES_PER_THREAD)
    )
    if blocks == 1:
        return Split()
    lanes = 1 if along_input else width * vector
    return Split(accumulator_bytes * num_outputs * blocks * lanes, SEMAPHORE_BYTES * columns)


def split_sum(
    shape: Sequence[int], strides: Sequence[int], dims: list[int], dtype: torch.dtype, num_multiprocessors: int
) -> list[int]:
    """The buffers of a sum of numbers of `dtype`."""
    return buffers(shape, strides, dims, num_multiprocessors, sum_bytes(dtype))


def buffers(
    shape: Sequence[int], strides: Sequence[int], dims: list[int], num_multiprocessors: int, accumulator_bytes: int
) -> list[int]:
    """The buffer and the semaphores of a reduction, none where one block does it."""
    split = split_reduction(shape, strides, dims, num_multiprocessors, accumulator_bytes)
    return [size for size in (split.buffer_bytes, split.semaphore_bytes) if size]


def staging(
    shape: Sequence[int], strides: Sequence[int], dims: list[int], num_multiprocessors: int, accumulator_bytes: int,
    itemsize: int,
) -> Temporaries:  # fmt: skip
    """The buffers of a reduction, one after the other for parts of a tensor that 32 bits do not address.

    ATen/native/TensorIterator.cpp, `SplitUntil32Bit`.
    """
    halves = _halves(shape, strides, itemsize)
    if not halves:
        return together(*buffers(shape, strides, dims, num_multiprocessors, accumulator_bytes))
    of_halves = (staging(half, strides, dims, num_multiprocessors, accumulator_bytes, itemsize) for half in halves)
    return tuple(chain.from_iterable(of_halves))


def _halves(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> list[list[int]]:
    """The shapes of both halves along the widest dimension, none of a tensor that 32 bits address."""
    extents = [(size - 1) * stride * itemsize for size, stride in zip(shape, strides, strict=True)]
    if prod(shape) <= MAX_INDEX and 1 + sum(extents) <= MAX_INDEX:
        return []
    widest = extents.index(max(extents))
    half = shape[widest] // 2
    return [[*shape[:widest], size, *shape[widest + 1 :]] for size in (half, shape[widest] - half)]


def sum_(call: KernelCall) -> Temporaries:
    """A sum, mean or product: of a copy in the type of the result, but for half precision in single.

    ATen/native/ReduceOpsUtils.h, `make_reduction`: summing up a mask takes eight bytes for each of its elements.
    """
    tensor, dtype = call.args[0], call.out.dtype
    if tensor.dtype in LOW_PRECISION and dtype == torch.float32:
        dtype = tensor.dtype
    if dtype == tensor.dtype or not tensor.numel():
        return _reduced(call, tensor.stride(), dtype, sum_bytes(dtype))
    copy = tensor.numel() * dtype.itemsize
    return (copy, *_reduced(call, strides_of_copy(tensor), dtype, sum_bytes(dtype)), -copy)


def reduction(call: KernelCall) -> Temporaries:
    """The buffers of one of `ACCUMULATORS`."""
    tensor, accumulator_bytes = call.args[0], ACCUMULATORS[call.func](call.args[0].dtype)
    if call.func in TRUTHS and tensor.numel() == 1:
        return together(*([1] if tensor.dtype != torch.bool else []))
    dims = _reduced_dims(call.func, call.args, call.kwargs, tensor.dim())
    copies = contiguous_copies(tensor) if call.func in OF_ALL and len(dims) == tensor.dim() else []
    strides = row_major(tensor.shape) if copies else tensor.stride()
    return (*copies, *_reduced(call, strides, tensor.dtype, accumulator_bytes), *(-copy for copy in copies))


def _reduced(call: KernelCall, strides: Sequence[int], dtype: torch.dtype, accumulator_bytes: int) -> Temporaries:
    """The buffers of a reduction of the call's first argument, which has `strides` and `dtype`."""
    shape, out = call.args[0].shape, call.out[0] if isinstance(call.out, (tuple, list)) else call.out
    dims = _reduced_dims(call.func, call.args, call.kwargs, len(shape))
    staged = staging(shape, strides, dims, call.rules.multi_processor_count, accumulator_bytes, dtype.itemsize)
    keeps = call.func not in TRUTHS and accumulator_bytes > out.itemsize and _halves(shape, strides, dtype.itemsize)
    kept = out.numel() * accumulator_bytes if keeps else 0
    return (kept, *staged, -kept) if kept else staged


def _reduced_dims(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ndim: int) -> list[int]:
    names = [argument.name for argument in func._schema.arguments]
    if "dim" not in names:
        return list(range(ndim))
    position = names.index("dim")
    dim = args[position] if len(args) > position else kwargs.get("dim")
    if dim is None or dim == []:
        return list(range(ndim))
    return [d % ndim for d in (dim if isinstance(dim, (list, tuple)) else [dim])] if ndim else []


TEMPORARIES: dict[object, Rule] = dict.fromkeys(SUMS, sum_) | dict.fromkeys(ACCUMULATORS, reduction)
