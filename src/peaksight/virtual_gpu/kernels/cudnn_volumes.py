"""The forward of convolutions over volumes: stems of clips, and windows that are flat in time or in the picture.

Networks of clips take windows of pictures and of time apart. Read off the layers of torchvision's S3D and MViT beside
R(2+1)D's on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-29 and 2026-11-30).

Limitations:
    Which kernel runs is cuDNN's choice; shapes between those that were read may differ.
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.convolution_kinds import FEW_CHANNELS
from peaksight.virtual_gpu.kernels.convolution_problem import SMALL_WINDOW, TILE, Convolution

ALIGNED_FILTERS = 4
HALF_TILE = TILE // 2
FEW_FLAT_CHANNELS = 32
LONGER_SUM = 1024


def forward(convolution: Convolution) -> int | None:
    """Bytes of the workspace for `y`; None of all others."""
    is_usual = max(convolution.dilation) == 1 and convolution.groups == 1 and not convolution.is_transposed
    if len(convolution.kernel) != 3 or not is_usual or convolution.is_channels_last or convolution.is_product:
        return None
    if convolution.channels < FEW_CHANNELS:
        return _of_stem(convolution)
    if convolution.is_half:
        return None
    if convolution.kernel[0] == 1:
        return _flat_in_time(convolution)
    return _flat_in_the_picture(convolution) if max(convolution.kernel[1:]) == 1 else None


def _of_stem(convolution: Convolution) -> int | None:
    """Large windows that overlap: copies without padding; none in bfloat16, nor to filters that aren't aligned."""
    if not convolution.overlaps or prod(convolution.kernel) <= SMALL_WINDOW:
        return None
    is_copied = convolution.x.dtype != torch.bfloat16 and convolution.filters % ALIGNED_FILTERS == 0
    return convolution.copies() if is_copied else 0


def _flat_in_time(convolution: Convolution) -> int | None:
    """Windows of single pictures that move by one, not to whole tiles: copies of all but `y`; of few channels none."""
    if max(convolution.stride) > 1:
        return None
    if convolution.channels <= FEW_FLAT_CHANNELS and convolution.filters < TILE:
        return 0
    is_in_place = convolution.filters % ALIGNED_FILTERS == 0 and convolution.filters % TILE != 0
    return convolution.copies(y=False) if is_in_place and convolution.sum_length <= LONGER_SUM else None


def _flat_in_the_picture(convolution: Convolution) -> int | None:
    """Windows of time alone: none to a tile that isn't filled; half a tile from as many channels copies all."""
    if convolution.filters < TILE and convolution.filters != HALF_TILE:
        return 0
    return convolution.copies() if convolution.channels == convolution.filters == HALF_TILE else None
