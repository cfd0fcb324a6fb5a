"""The workspaces of cuDNN's kernels for dilated convolutions in single precision, as of segmentation networks.

They read tensors in a layout of their own and write rows or channels last: what is read is copied, and most results.
Where channels come last, only very long sums take them. Read off single calls on an H200 (torch 2.11+cu130, cuDNN 9.19,
benchmarks/operators of 2026-11-28, benchmarks/kernels/network_layers.py of 2026-11-29): 32 to 2,048 channels.

Limitations:
    How often the sum of the weight's gradient is split is read off six channel counts; that of many channels to 256
    filters has rules of its own (cudnn_dilated_tiles.py).
"""

from math import inf

import torch

from peaksight.virtual_gpu.kernels import cudnn_dilated_tiles as tiles
from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, SHORT_SUM, TILE, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

VERY_LONG_SUM = 1 << 13
MANY_POSITIONS = 1 << 13
SUM_OF_PART = 1 << 10
NUM_PARTS_OF_SHORT_SUM = 12
COUNTERS_BYTES = 128
POSITIONS_IN_PLACE = 3_000
TO_MANY = 384


def takes_them(convolution: Convolution) -> bool:
    """Long sums of channels and windows in single precision; in half the kernels are those without dilation."""
    return _is_dilated(convolution) and convolution.sum_length > SHORT_SUM


def splits_the_sum(convolution: Convolution) -> bool:
    """Whether theirs is the gradient of the weight: that of short sums is only if channels come last."""
    return _is_dilated(convolution) and (convolution.is_channels_last or convolution.sum_length > SHORT_SUM)


def _is_dilated(convolution: Convolution) -> bool:
    """Whether the window has gaps, in single precision and in an image."""
    is_image = convolution.is_of_images and not convolution.is_transposed
    return is_image and max(convolution.dilation) > 1 and convolution.x.dtype == torch.float32


def _is_very_long(convolution: Convolution) -> bool:
    return convolution.sum_length > VERY_LONG_SUM


def forward(convolution: Convolution) -> int:
    """The input and the weight, and the result; of large gaps it is written in place over many positions."""
    if convolution.is_channels_last:
        return convolution.copies() if _is_very_long(convolution) else 0
    if tiles.are_of(convolution):
        return convolution.copies() + tiles.forward(convolution)
    return convolution.copies(y=convolution.num_positions < _fewest_in_place(convolution))


def _fewest_in_place(convolution: Convolution) -> float:
    """Fewer positions for 256 channels to 512 and as many filters than for very long sums or 512 filters."""
    if _is_very_long(convolution) or (tiles.has_many(convolution) and convolution.filters >= TO_MANY):
        return MANY_POSITIONS
    return POSITIONS_IN_PLACE if tiles.has_many(convolution) else inf


def gradient_of_input(convolution: Convolution) -> int:
    """The gradient of the output and the weight, and the result unless its channels come last."""
    if convolution.is_channels_last and not _is_very_long(convolution):
        return 0
    of_tiles = tiles.gradient_of_input(convolution) if tiles.are_of(convolution) else 0
    return convolution.copies(x=not convolution.is_channels_last) + of_tiles


def gradient_of_weight(convolution: Convolution, num_multiprocessors: int) -> int:
    """The input and the gradient of the output, and partial sums; the result too unless its channels come last."""
    weight_bytes = convolution.weight.nbytes
    copied = convolution.x.nbytes + convolution.y.nbytes + DESCRIPTOR_BYTES + COUNTERS_BYTES
    if (of_many := tiles.gradient_of_weight(convolution, num_multiprocessors)) is not None:
        return copied + weight_bytes + of_many
    parts = _num_parts(convolution, num_multiprocessors) * weight_bytes
    if not convolution.is_channels_last:
        return copied + weight_bytes + parts
    is_split_in_place = SHORT_SUM < convolution.sum_length <= VERY_LONG_SUM and parts
    return parts if is_split_in_place else copied + parts


def _num_parts(convolution: Convolution, num_multiprocessors: int) -> int:
    """One for so many products of a very long sum; else as many as there are multiprocessors for each tile."""
    if convolution.sum_length <= SHORT_SUM:
        return NUM_PARTS_OF_SHORT_SUM
    if _is_very_long(convolution):
        return convolution.sum_length // SUM_OF_PART
    num_tiles = div_up(convolution.weight.shape[0], TILE) * div_up(convolution.sum_length, TILE)
    parts = num_multiprocessors // num_tiles
    return parts if parts > 1 else 0
