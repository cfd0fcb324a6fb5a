"""Kinds of convolutions that cuDNN treats apart in the forward and in both gradients (cudnn_convolutions.py)."""

from math import prod

import torch

from peaksight.virtual_gpu.kernels.convolution_problem import (
    DESCRIPTOR_BYTES,
    MANY_IN_GROUPS,
    SMALL_WINDOW,
    Convolution,
)

FEW_CHANNELS = 4
FEW_POSITIONS = 1 << 8
LARGE_WINDOW = 49
LARGE_BATCH = 64
LARGE_WEIGHT = 1 << 19
RANKED_CHANNELS = 256
MANY_RANKED_POSITIONS = 2048


def padding(convolution: Convolution) -> int:
    """What few channels are padded to: a window of a stem in float16 has kernels for four."""
    if not convolution.is_half:
        return 1
    return 4 if convolution.x.dtype == torch.float16 and overlaps_by_half(convolution) else 8


def overlaps_by_half(convolution: Convolution) -> bool:
    """A stem whose large windows overlap by more than half, as in residual networks."""
    is_large = len(convolution.kernel) > 1 and prod(convolution.kernel) > SMALL_WINDOW
    return is_large and convolution.kernel[0] > 2 * convolution.stride[0]


def has_large_window(convolution: Convolution) -> bool:
    """An image's window in single precision for which channels last are no help: 32 problems of either."""
    return convolution.is_of_images and not convolution.is_half and prod(convolution.kernel) >= LARGE_WINDOW


def has_long_groups(convolution: Convolution) -> bool:
    """A long window of one dimension in groups, as speech networks embed positions; read off one, in two sizes."""
    return len(convolution.kernel) == 1 and convolution.groups > 1 and convolution.kernel[0] > SMALL_WINDOW


def has_few_in_groups(convolution: Convolution) -> bool:
    """Groups of four channels, as of ResNeXt's first stage; read off one."""
    return convolution.groups > 1 and convolution.channels == FEW_CHANNELS


def steps_to_few_positions(convolution: Convolution) -> bool:
    """Overlapping windows with a stride over images in single precision, to few positions.

    None of 280 problems of fewer than 256 positions was copied for the gradient of the input, and half of those of four
    taps and fewer than 128 channels to 1024.
    """
    is_image = convolution.is_of_images and max(convolution.dilation) == 1
    if not is_image or convolution.is_half or convolution.is_channels_last or max(convolution.stride) == 1:
        return False
    is_narrow = convolution.kernel[0] % 2 == 0 and convolution.channels < MANY_IN_GROUPS
    most_positions = FEW_POSITIONS * (4 if is_narrow else 1)
    return convolution.overlaps and convolution.num_positions < most_positions


def steps_by_two_of_four(convolution: Convolution) -> bool:
    """Four taps by four with a stride of two, as generators and discriminators of images have them."""
    return convolution.kernel == (4, 4) and convolution.stride == (2, 2)


def steps_from_256_channels(convolution: Convolution) -> bool:
    """Overlapping windows with a stride over images in single precision, of 256 channels to 2048 positions and more.

    cuDNN ranks other plans first for them: none of 45 is tried in Fourier space, where nearly all others are.
    """
    is_image = convolution.is_of_images and max(convolution.dilation) == 1 and not convolution.is_half
    is_step = convolution.overlaps and min(convolution.stride) > 1
    is_wide = convolution.channels == RANKED_CHANNELS and convolution.num_positions >= MANY_RANKED_POSITIONS
    return is_image and is_step and is_wide


def has_narrow_groups(convolution: Convolution) -> bool:
    """Groups of two or three channels, but those with as many filters as go by eights (`Convolution.in_eights`)."""
    is_narrow = convolution.groups > 1 and 1 < convolution.channels < FEW_CHANNELS
    return is_narrow and convolution.filters // convolution.groups < MANY_IN_GROUPS


def widened_copies(convolution: Convolution) -> int:
    """Bytes of copies of all three tensors whose groups have four channels, and as many more filters."""
    widening = FEW_CHANNELS // convolution.channels
    tensors = convolution.x.nbytes + convolution.y.nbytes
    return widening * (tensors + widening * convolution.weight.nbytes) + DESCRIPTOR_BYTES
