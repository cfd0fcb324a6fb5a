"""The first call of a convolution with `cudnn.benchmark`: one workspace, as large as the largest of ten kernels wants.

`benchmark_exec_plans` of ATen/native/cudnn/Conv_v8.cpp; later calls are those of the kernel that won. In single
precision some kernels go through Fourier space, and their workspace holds the spectra of the weight twice: gigabytes
for wide layers. Read off 384 first calls on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-29,
benchmarks/kernels/network_layers.py).

Limitations:
    Which ten are tried is cuDNN's choice. The spectra are there to the byte; the gradient of the input with a
    stride is read off four, and comes within a tenth. Strided groups can take more.
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, Convolution
from peaksight.virtual_gpu.kernels.cudnn_transforms import fourier_bytes
from peaksight.virtual_gpu.kernels.cudnn_whole_windows import SMALLEST_SIDE, spectrum_bytes

TILE_OF_INPUT = 32
TILE_OF_STRIDED_INPUT = 64
LARGEST_TILE = 256
MOST_PARTIAL_BYTES = 1 << 24
COPIES_OF_DEPTHWISE = 4


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: spectra of the weight and of `x`, each twice; a single tap has them if it narrows."""
    if not _has_spectra(convolution, max(convolution.stride)) or _widens(convolution):
        return _copies(convolution)
    tile = _tile(convolution)
    spectra = 2 * (_of_weight(convolution, tile) + _spectra(convolution.x, tile))
    return spectra + convolution.weight.nbytes + _copies_of_last(convolution)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes for the gradient of `x`: the spectra of all three, in tiles of a row."""
    is_strided = max(convolution.stride) > 1
    if not _has_spectra(convolution, 1) or not convolution.overlaps:
        return _copies(convolution)
    if is_strided and convolution.kernel[0] % 2 == 0 and not convolution.is_channels_last:
        return _copies(convolution)
    tile = TILE_OF_STRIDED_INPUT if is_strided else TILE_OF_INPUT
    of_images = _spectra(convolution.x, tile) + _spectra(convolution.y, tile)
    of_row = 1 if is_strided else -(-convolution.x.shape[-1] // (tile - 2))
    return _of_weight(convolution, tile) + of_images * of_row + _copies_of_last(convolution)


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes for the gradient of the weight: that of Fourier's transform; elsewhere partial sums."""
    if _has_spectra(convolution, max(convolution.stride)):
        return fourier_bytes(convolution, _tile(convolution)) + _copies_of_last(convolution)
    if convolution.is_depthwise:
        return _copies(convolution)
    tensors = convolution.x.nbytes + convolution.y.nbytes
    sums = min(MOST_PARTIAL_BYTES, tensors + FLOAT_BYTES * convolution.weight.numel())
    return sums + (0 if convolution.is_channels_last else tensors)


def _has_spectra(convolution: Convolution, stride: int) -> bool:
    """An image in single precision, without groups, gaps and steps."""
    is_image = len(convolution.kernel) == 2 and convolution.x.dtype == torch.float32
    return is_image and convolution.groups == stride == max(convolution.dilation) == 1


def _widens(convolution: Convolution) -> bool:
    return prod(convolution.kernel) == 1 and convolution.y.shape[1] >= convolution.x.shape[1]


def _tile(convolution: Convolution) -> int:
    """The power of two that holds an image and what the window adds to it."""
    needed = max(convolution.x.shape[-2:]) + max(convolution.kernel) - 1
    return min(LARGEST_TILE, max(SMALLEST_SIDE, 1 << (needed - 1).bit_length()))


def _of_weight(convolution: Convolution, tile: int) -> int:
    return convolution.weight.shape[0] * convolution.weight.shape[1] * spectrum_bytes(tile)


def _spectra(images: torch.Tensor, tile: int) -> int:
    return images.shape[0] * images.shape[1] * spectrum_bytes(tile)


def _copies_of_last(convolution: Convolution) -> int:
    return convolution.copies() if convolution.is_channels_last else 0


def _copies(convolution: Convolution) -> int:
    """Either tensor in another layout; in groups of four for each channel that cuDNN has a kernel for."""
    tensors = convolution.x.nbytes + convolution.y.nbytes
    if not convolution.is_depthwise:
        return tensors
    has_kernels = convolution.is_channels_last or convolution.x.dtype == torch.float16
    return COPIES_OF_DEPTHWISE * tensors if has_kernels else 0
