"""The workspaces of convolutions with a group for each channel.

PyTorch's own kernels need none. Where channels come last, and for some of float16, cuDNN's run:
`ConvParams::use_cudnn_depthwise` of ATen/native/Convolution.cpp. Read off an H200 (torch 2.11+cu130, cuDNN 9.19): ten
shapes of benchmarks/operators on 2026-11-28, 180 of benchmarks/kernels/network_layers.py on 2026-11-29.
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, SMALL_WINDOW, Convolution

FLOAT_BYTES = 4
POSITIONS_OF_PART = 98
MOST_PARTS = 256
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
    """Sums in parts, of copies unless channels come last.

    Large windows in single precision are groups of four channels: copies of them, and a part a multiprocessor.
    """
    partial = FLOAT_BYTES * convolution.weight.numel()
    if not convolution.is_channels_last:
        return convolution.x.nbytes + convolution.y.nbytes + DESCRIPTOR_BYTES if _takes_cudnn(convolution) else 0
    if convolution.is_half and _has_dense_groups(convolution):
        return GROUP * (convolution.x.nbytes + convolution.y.nbytes)
    if convolution.is_half:
        return partial * min(MOST_PARTS, convolution.num_positions // POSITIONS_OF_PART)
    if prod(convolution.kernel) <= SMALL_WINDOW:
        return 0
    return GROUP * (convolution.x.nbytes + convolution.y.nbytes + partial * num_multiprocessors)


def _has_dense_groups(convolution: Convolution) -> bool:
    """Whether in half, too, windows of 5 x 5 over large images of many channels are groups of four channels."""
    if len(convolution.kernel) != 2 or min(convolution.x.shape[2:]) < LARGE_SIDE or prod(convolution.stride) > 1:
        return False
    is_wide = convolution.x.shape[1] >= MANY_CHANNELS and convolution.kernel == SQUARES[-1]
    return is_wide and convolution.num_positions >= MANY_POSITIONS


def _takes_cudnn(convolution: Convolution) -> bool:
    """`check_cudnn_depthwise_workload_with_filter` for windows that move by one; wider steps take no workspace.

    Nor do few positions or many channels.
    """
    return (
        convolution.x.dtype == torch.float16
        and convolution.kernel in SQUARES
        and max(convolution.dilation) == 1
        and prod(convolution.stride) == 1
        and FEWEST_CHANNELS <= convolution.x.shape[1] <= MOST_CHANNELS
        and convolution.x.shape[1] % CHANNELS_OF_LOAD == 0
        and convolution.num_positions >= FEWEST_POSITIONS
        and convolution.x.shape[-1] >= FEWEST_COLUMNS
    )
