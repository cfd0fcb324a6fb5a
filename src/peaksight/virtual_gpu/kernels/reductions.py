"""The staging buffer of a reduction that is split over thread blocks: ATen/native/cuda/Reduce.cuh.

A sum over many rows with few outputs (the gradient of a bias) is divided among thread blocks, which leave their
partial results in a buffer from the caching allocator, beside one semaphore for each column of blocks.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten

MAX_NUM_THREADS = 512
WARP_SIZE = 32
VECTOR = 4
MIN_VALUES_PER_THREAD = 16
MAX_VALUES_PER_THREAD = 256
SEMAPHORE_BYTES = 4

REDUCTIONS = {
    aten.sum.dim_IntList,
    aten.sum.default,
    aten.mean.dim,
    aten.mean.default,
    aten.linalg_vector_norm.default,
    aten.norm.ScalarOpt_dim,
    aten.norm.Scalar,
    aten.amax.default,
    aten.amin.default,
    aten.any.default,
    aten.any.dim,
    aten.all.default,
    aten.all.dim,
    aten.prod.default,
    aten.prod.dim_int,
}


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


def coalesced(shape: list[int], strides: list[int], dims: list[int]) -> list[tuple[int, int]]:
    """(size, stride) of `dims` by ascending stride, neighbours that lie one behind the other taken as one."""
    merged: list[tuple[int, int]] = []
    for stride, size in sorted((strides[d], shape[d]) for d in dims if shape[d] != 1):
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * size, merged[-1][1])
        else:
            merged.append((size, stride))
    return merged


def split_reduction(
    shape: list[int], strides: list[int], dims: list[int], num_multiprocessors: int, accumulator_bytes: int = 4
) -> Split:
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


def reduction(call: KernelCall) -> Temporaries:
    """The buffers of one of `REDUCTIONS`."""
    tensor = call.args[0]
    dims = _reduced_dims(call.func, call.args, call.kwargs, tensor.dim())
    wide = tensor.dtype in (torch.float64, torch.int64, torch.complex64)
    split = split_reduction(
        list(tensor.shape), list(tensor.stride()), dims, call.rules.multi_processor_count, 8 if wide else 4
    )
    return together(*filter(None, (split.buffer_bytes, split.semaphore_bytes)))


def _reduced_dims(func: Any, args: tuple, kwargs: dict, ndim: int) -> list[int]:
    names = [argument.name for argument in func._schema.arguments]
    if "dim" not in names:
        return list(range(ndim))
    position = names.index("dim")
    dim = args[position] if len(args) > position else kwargs.get("dim")
    if dim is None or dim == []:
        return list(range(ndim))
    return [d % ndim for d in (dim if isinstance(dim, (list, tuple)) else [dim])] if ndim else []


TEMPORARIES: dict[object, Rule] = dict.fromkeys(REDUCTIONS, reduction)
