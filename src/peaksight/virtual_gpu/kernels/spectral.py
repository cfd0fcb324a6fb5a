"""What Fourier transforms take beside their results: ATen/native/cuda/SpectralOps.cpp.

Copies of inputs that cuFFT cannot walk through, of all that it would overwrite, and results of one step that are the
input of the next. To the byte what an H200 took for sizes that are products of small primes (torch 2.11+cu130,
2026-11-28, benchmarks/operators).

Limitations:
    Of several dimensions sizes above 4096 or with a prime factor above 11 were not measured: of those the copies alone
    are here, and `fft-workspace` is noted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import torch

from peaksight.virtual_gpu.kernels import cufft
from peaksight.virtual_gpu.kernels.layouts import row_major
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, given_back, together

aten = torch.ops.aten

MAX_DIMS = 3
HALF = (torch.float16, torch.complex32)
MAX_MEASURED_SIZE = 4096
MEASURED_PRIMES = (2, 3, 5, 7, 11)


def real_to_complex(call: KernelCall) -> Temporaries:
    """All dimensions at once, or the last one first."""
    tensor, dims = call.args[0], call.args[1]
    if not tensor.numel():
        return ()
    real = Layout(tensor.shape, tensor.stride(), tensor.dtype)
    if _at_once(dims):
        return _step(real, dims, is_halved=call.argument("onesided"), workspace=_of_real_rows(call, tensor.shape))
    last = _step(real, dims[-1:], is_halved=True)
    if len(dims) == 1:
        return last
    last_dim = dims[-1] % tensor.dim()
    halved = [size // 2 + 1 if dim == last_dim else size for dim, size in enumerate(tensor.shape)]
    strides = _restrided(tensor.stride(), halved, dims[-1:])
    between = call.out.numel() * call.out.itemsize
    return (*last, between, *_steps(Layout(halved, strides, call.out.dtype), list(dims[:-1])), -between)


def complex_to_real(call: KernelCall) -> Temporaries:
    """A copy of the input, which would be overwritten, or the result of the other dimensions."""
    tensor, dims = call.args[0], call.args[1]
    if not tensor.numel():
        return ()
    num_bytes = tensor.numel() * tensor.itemsize
    if _at_once(dims) or len(dims) == 1:
        copy = Layout(tensor.shape, row_major(tensor.shape), tensor.dtype)
        return (num_bytes, *_step(copy, dims, workspace=_of_real_rows(call, call.out.shape)), -num_bytes)
    others = _complex(Layout(tensor.shape, tensor.stride(), tensor.dtype), list(dims[:-1]))
    between = Layout(tensor.shape, _restrided(tensor.stride(), tensor.shape, dims[:-1]), tensor.dtype)
    return (num_bytes, *others, *_step(between, dims[-1:]), -num_bytes)


def complex_to_complex(call: KernelCall) -> Temporaries:
    """At most three dimensions at a time."""
    tensor, dims = call.args[0], call.args[1]
    if not tensor.numel() or not dims:
        return ()
    layout = Layout(tensor.shape, tensor.stride(), tensor.dtype)
    if len(dims) > 1:
        return _complex(layout, list(dims))
    size = tensor.shape[dims[0]]
    return _step(layout, dims, workspace=cufft.of_complex_rows(size, tensor.numel() // size, tensor.itemsize // 2))


def _of_real_rows(call: KernelCall, shape: Sequence[int]) -> int:
    """Bytes of cuFFT's workspace where one dimension of `shape` is transformed to or from real numbers."""
    tensor, dims = call.args[0], call.args[1]
    if len(dims) > 1:
        return 0
    itemsize = min(tensor.itemsize, call.out.itemsize)
    return cufft.of_real_rows(shape[dims[0]], prod(shape) // shape[dims[0]], itemsize)


def is_measured(call: KernelCall) -> bool:
    """Whether the workspace of cuFFT is known: of rows, and of several dimensions of sizes that need none."""
    tensor, dims = call.args[0], call.args[1]
    if len(dims) <= 1:
        return True
    sizes = call.out.shape if call.func is aten._fft_c2r.default else tensor.shape
    return not tensor.numel() or all(_is_measured(sizes[dim]) for dim in dims)


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor's shape, strides and type."""

    shape: Sequence[int]
    strides: Sequence[int]
    dtype: torch.dtype

    @property
    def num_bytes(self) -> int:
        """Of all elements."""
        return prod(self.shape) * self.dtype.itemsize


def _is_measured(size: int) -> bool:
    return size <= MAX_MEASURED_SIZE and _rest(size) == 1


def _rest(size: int) -> int:
    """What measured primes leave of `size`."""
    for prime in MEASURED_PRIMES:
        while size and size % prime == 0:
            size //= prime
    return size


def _at_once(dims: Sequence[int]) -> bool:
    return len(dims) <= MAX_DIMS and list(dims[:2]) != [0, 1]


def _complex(layout: Layout, dims: list[int]) -> Temporaries:
    """Between two steps, a second buffer as large as the result."""
    between = () if len(dims) <= MAX_DIMS else (layout.num_bytes,)
    return (*between, *_steps(layout, dims), *given_back(between))


def _steps(layout: Layout, dims: list[int]) -> Temporaries:
    taken: list[int] = []
    while dims:
        dims = sorted(dims, key=lambda dim: -layout.strides[dim])
        dims, now = dims[:-MAX_DIMS], dims[-MAX_DIMS:]
        taken += _step(layout, now)
        layout = Layout(layout.shape, _restrided(layout.strides, layout.shape, now), layout.dtype)
    return taken


def _step(layout: Layout, dims: Sequence[int], *, is_halved: bool = True, workspace: int = 0) -> Temporaries:
    """The workspace, a copy where the kept dimensions are not in line, one where the transformed ones do not nest.

    In half precision cuFFT walks through nothing but rows in line, and makes no result of both sides of a real one.
    """
    shape, strides = layout.shape, layout.strides
    dims = [dim % len(shape) for dim in dims]
    batch = [dim for dim in _by_stride(shape, strides, dims) if shape[dim] != 1]
    in_line = all(strides[outer] == strides[inner] * shape[inner] for outer, inner in pairwise(batch))
    nested = all(
        strides[outer] % max(1, strides[inner]) == 0 and strides[outer] >= strides[inner] * shape[inner]
        for outer, inner in pairwise(dims)
    )
    walkable = not in_line or (_is_simple(layout, [*batch, *dims]) if layout.dtype in HALF else nested)
    cloned = not walkable or (layout.dtype in HALF and not is_halved)
    copies = [layout.num_bytes] * ((not in_line) + cloned)
    return together(*copies, *[workspace] * (workspace > 0))


def _is_simple(layout: Layout, order: Sequence[int]) -> bool:
    """Whether the elements lie one behind the other in the order of the dimensions."""
    expected = row_major([layout.shape[dim] for dim in order])
    return all(
        layout.strides[dim] == stride or layout.shape[dim] == 1 for dim, stride in zip(order, expected, strict=True)
    )


def _by_stride(shape: Sequence[int], strides: Sequence[int], dims: Sequence[int]) -> list[int]:
    return sorted((dim for dim in range(len(shape)) if dim not in dims), key=lambda dim: -strides[dim])


def _restrided(strides: Sequence[int], shape: Sequence[int], dims: Sequence[int]) -> Sequence[int]:
    """The strides of the result of a step: the transformed dimensions are innermost."""
    dims = [dim % len(shape) for dim in dims]
    order = [*_by_stride(shape, strides, dims), *dims]
    dense = row_major([shape[dim] for dim in order])
    return [dense[order.index(dim)] for dim in range(len(shape))]


TEMPORARIES: dict[object, Rule] = {
    aten._fft_r2c.default: real_to_complex,
    aten._fft_c2r.default: complex_to_real,
    aten._fft_c2c.default: complex_to_complex,
}
