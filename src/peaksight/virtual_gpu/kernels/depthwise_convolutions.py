"""The workspaces of convolutions with a group for each channel.

PyTorch's own kernels need none. Where channels come last, and for some of float16, cuDNN's run:
`ConvParams::use_cudnn_depthwise` of ATen/native/Convolution.cpp. Read off an H200 (torch 2.11+cu130, cuDNN 9.19): ten
shapes of benchmarks/operators on 2026-11-28, 250 of benchmarks/kernels on 2026-11-29. In half, sums are there to the
byte for 49 of 55 problems in bfloat16 and 28 of 49 in float16.
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, FLOAT_BYTES, SMALL_WINDOW, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

PARTS_OF_IMAGE = 8
CHANNELS_OF_PART = 32
CHANNELS_OF_WAVE = 96
FEWEST_SUMMED = 2048
FEWEST_CHANNELS = 32
MOST_CHANNELS = 256
CHANNELS_OF_LOAD = 8
FEWEST_POSITIONS = 1 << 14
FEWEST_COLUMNS = 7
GROUP = 4
LARGE_SIDE = 28
MANY_CHANNELS = 512
MANY_POSITIONS = 1 << 12
SQUARES = ((1, 1), (3, 3), (5, 5))


def has_own_kernels(convolution: Convolution) -> bool:
    """Whether DepthwiseConv2d.cu runs: an image or a line with a group for each channel, not left to cuDNN."""
    if not convolution.is_depthwise or convolution.is_transposed or len(convolution.kernel) > 2:
        return False
    return not (convolution.is_channels_last or _takes_cudnn(convolution))


def gradient_of_weight(convolution: Convolution, num_multiprocessors: int) -> int:
    """Copies, or where channels come last sums in parts: in half of images, in single precision of large windows."""
    if not convolution.is_channels_last:
        return convolution.x.nbytes + convolution.y.nbytes + DESCRIPTOR_BYTES if _is_copied(convolution) else 0
    if convolution.is_half and _has_dense_groups(convolution):
        return GROUP * (convolution.x.nbytes + convolution.y.nbytes)
    return (
        _sums_in_half(convolution) if convolution.is_half else _sums_of_large_windows(convolution, num_multiprocessors)
    )


def _sums_in_half(convolution: Convolution) -> int:
    """Eight parts of each image, channels by 32; none for few positions of few images."""
    num_images, num_channels = convolution.x.shape[:2]
    if num_images * convolution.num_positions < FEWEST_SUMMED:
        return 0
    of_part = FLOAT_BYTES * prod(convolution.kernel) * div_up(num_channels, CHANNELS_OF_PART) * CHANNELS_OF_PART
    return PARTS_OF_IMAGE * num_images * of_part


def _sums_of_large_windows(convolution: Convolution, num_multiprocessors: int) -> int:
    """Groups of four channels: copies of them, and as many parts as multiprocessors, fewer of many channels.

    Small images have kernels of their own.
    """
    if prod(convolution.kernel) <= SMALL_WINDOW or min(convolution.x.shape[2:]) < LARGE_SIDE:
        return 0
    num_parts = num_multiprocessors * CHANNELS_OF_WAVE // max(CHANNELS_OF_WAVE, convolution.x.shape[1])
    partial = FLOAT_BYTES * convolution.weight.numel()
    return GROUP * (convolution.x.nbytes + convolution.y.nbytes + partial * num_parts)


def _has_dense_groups(convolution: Convolution) -> bool:
    """Whether in half, too, windows of 5 x 5 over large images of many channels are groups of four channels."""
    if len(convolution.kernel) != 2 or min(convolution.x.shape[2:]) < LARGE_SIDE or prod(convolution.stride) > 1:
        return False
    is_wide = convolution.x.shape[1] >= MANY_CHANNELS and convolution.kernel == SQUARES[-1]
    return is_wide and convolution.num_positions >= MANY_POSITIONS


def _is_copied(convolution: Convolution) -> bool:
    """Of those that cuDNN runs: windows that move by one over many positions, of up to 256 channels."""
    return (
        _takes_cudnn(convolution)
        and prod(convolution.stride) == 1
        and convolution.x.shape[1] <= MOST_CHANNELS
        and convolution.x.shape[1] % CHANNELS_OF_LOAD == 0
        and convolution.num_positions >= FEWEST_POSITIONS
    )


def _takes_cudnn(convolution: Convolution) -> bool:
    """`use_cudnn_depthwise` and `check_cudnn_depthwise_workload_with_filter` of Convolution.cpp, for images."""
    samples, channels, *_, columns = convolution.x.shape
    if convolution.x.dtype != torch.float16 or max(convolution.dilation) > 1 or channels < FEWEST_CHANNELS:
        return False
    if convolution.kernel not in SQUARES or columns < FEWEST_COLUMNS or len(set(convolution.stride)) > 1:
        return False
    if convolution.stride[0] == 1:
        return True
    return convolution.stride[0] == 2 and _is_worth_a_step(samples, channels, columns, convolution.kernel[0])


def _is_worth_a_step(samples: int, channels: int, columns: int, size: int) -> bool:
    """Whether cuDNN's kernels for a stride of two are the faster ones."""
    if size == 1:
        return (
            columns <= LARGE_SIDE if samples == 1 else samples <= 16 and channels >= 128 and columns <= FEWEST_COLUMNS
        )
    return samples == 1 or channels >= MANY_CHANNELS or (channels >= MOST_CHANNELS and columns >= LARGE_SIDE)
