"""The workspaces of windows that lie side by side over three channels, as transformers cut pictures into patches.

In half channels are padded to eight and copied, for wide weights alone and not of very many pixels; in single precision
for large batches, padded to four. Read off 1,160 problems on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-30,
benchmarks/kernels): patches of 4, 8, 14, 16 and 32 to 96 to 1,024 filters, of 1 to 256 pictures of 224, 336 and 384.

Limitations:
    Clips in half are taken to need nothing in the forward, as those of one network; other counts of channels are told
    by other rules.
"""

from math import prod

from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

CHANNELS = 3
SMALLEST_PATCH = 4
LARGE_PATCH = 24
PADDED, PADDED_SINGLE = 8, 4
WIDE_WEIGHT = 500_000
FILTERS_OF_MANY_PIXELS = 512
MOST_PIXELS = 13_000_000
FEWEST_PIXELS_LAST = 75_000
# Batches in single precision: from where patches of four, of eight and of more are copied, and `y` is not.
FEWEST_OF_FOUR, FEWEST_OF_EIGHT, FEWEST, FEWEST_IN_PLACE = 80, 3, 56, 192
MANY_FILTERS = 1_024
FEWEST_PIXELS_OF_MANY_FILTERS = 212_000
# Parts of the sum for the gradient of the weight.
FEWEST_SPLIT_POSITIONS = 2_700
LARGE_BATCH = 80
FEW_PARTS, MANY_PARTS = 3, 4
MOST_SPLIT_PIXELS = 16_500_000
FEWEST_LARGE_PATCHES = 500
FILTERS_OF_TILE = 256


def takes_them(convolution: Convolution) -> bool:
    """Whether windows lie side by side over three channels."""
    is_plain = convolution.groups == 1 and not convolution.is_transposed and max(convolution.dilation) == 1
    is_told = convolution.is_of_images or (len(convolution.kernel) == 3 and convolution.is_half)
    is_side_by_side = is_told and convolution.kernel == tuple(convolution.stride)
    return is_plain and is_side_by_side and convolution.channels == CHANNELS and _patch(convolution) >= SMALLEST_PATCH


def has_split_sums(convolution: Convolution) -> bool:
    """Whether `gradient_of_weight` tells its bytes: of pictures in half, in patches of more than eight."""
    return takes_them(convolution) and convolution.is_of_images and convolution.is_half and _patch(convolution) > 8


def forward(convolution: Convolution) -> int:
    """Bytes of the workspace for `y`."""
    if not convolution.is_half:
        return _forward_in_single(convolution)
    if not convolution.is_of_images or _patch(convolution) == SMALLEST_PATCH:
        return 0
    if convolution.is_channels_last:
        return convolution.copies(PADDED, y=False) if convolution.num_pixels >= FEWEST_PIXELS_LAST else 0
    is_of_most = convolution.num_pixels >= MOST_PIXELS and convolution.filters >= FILTERS_OF_MANY_PIXELS
    is_copied = convolution.weight.numel() >= WIDE_WEIGHT and not is_of_most
    return convolution.copies(PADDED) if is_copied else 0


def _forward_in_single(convolution: Convolution) -> int:
    if convolution.is_channels_last:
        return 0
    num_samples, patch = convolution.x.shape[0], _patch(convolution)
    if patch <= 8:
        fewest = FEWEST_OF_FOUR if patch < 8 else FEWEST_OF_EIGHT
        return convolution.copies(PADDED_SINGLE, y=False) if num_samples >= fewest else 0
    if num_samples >= FEWEST:
        is_in_place = num_samples >= FEWEST_IN_PLACE and prod(convolution.y.shape[2:]) % 4 == 0
        return convolution.copies(PADDED_SINGLE, y=not is_in_place)
    is_of_many = convolution.filters >= MANY_FILTERS and convolution.num_pixels >= FEWEST_PIXELS_OF_MANY_FILTERS
    return convolution.copies() if is_of_many else 0


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes of the workspace for the gradient of the weight: copies and parts of the sum, of large patches the sum."""
    if _patch(convolution) >= LARGE_PATCH and convolution.num_positions >= FEWEST_LARGE_PATCHES:
        return FLOAT_BYTES * convolution.weight.numel()
    copied = convolution.copies(PADDED, y=not convolution.is_channels_last)
    if convolution.num_positions < FEWEST_SPLIT_POSITIONS:
        return copied
    part = FLOAT_BYTES * convolution.filters * PADDED * prod(convolution.kernel)
    if convolution.num_pixels >= MOST_SPLIT_PIXELS:
        return copied + part * div_up(convolution.filters, FILTERS_OF_TILE) * FILTERS_OF_TILE // convolution.filters
    return copied + part * (FEW_PARTS if convolution.x.shape[0] < LARGE_BATCH else MANY_PARTS)


def _patch(convolution: Convolution) -> int:
    """Pixels along the last side of a window."""
    return convolution.kernel[-1]
