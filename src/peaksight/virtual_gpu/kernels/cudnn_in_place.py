"""Which windows of three taps by three over 64 channels in single precision write `y` in place, without a copy of it.

To 64 filters every image has a batch from which `y` is copied; to 128 it is copied of few positions alone. Read off
cuDNN's first plans for an H200 (cuDNN 9.19, as cudnn_tiles.py); of those measured, 115 of 117 and 94 of 95 come within
a MiB.
"""

from math import inf

from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

CHANNELS = 64
SMALL_SIDE = 3
# The longest side of images, and the smallest batch whose `y` is copied.
BATCHES = ((8, 128), (9, inf), (23, 32), (35, 24), (47, 96))
FEWEST_POSITIONS = 131_072
# Of large images.
FEW_SAMPLES = 3
LARGE_SIDE = 80
VERY_LARGE_SIDE = 120
FEWEST_OF_LARGE = 25_000
FEWEST_OF_VERY_LARGE = 60_000


def takes_them(convolution: Convolution) -> bool:
    """Whether `convolution` is one of those here."""
    is_image = convolution.is_of_images and not convolution.is_transposed and max(convolution.dilation) == 1
    is_window = set(convolution.kernel) == {SMALL_SIDE} and convolution.channels == CHANNELS
    return is_image and is_window and not convolution.is_half and convolution.filters in (CHANNELS, 2 * CHANNELS)


def writes_in_place(convolution: Convolution) -> bool:
    """Whether `y` is not copied."""
    return _to_64(convolution) if convolution.filters == CHANNELS else _to_128(convolution)


def _to_64(convolution: Convolution) -> bool:
    batch, side = convolution.x.shape[0], convolution.x.shape[-1]
    fewest = next((fewest for longest, fewest in BATCHES if side <= longest), None)
    if fewest is not None:
        return batch < fewest
    is_large = max(convolution.stride) == 1 and side >= LARGE_SIDE
    fewest_positions = FEWEST_OF_LARGE if is_large else FEWEST_POSITIONS
    if side >= VERY_LARGE_SIDE:
        fewest_positions = FEWEST_OF_VERY_LARGE
    return convolution.num_pixels < fewest_positions


def _to_128(convolution: Convolution) -> bool:
    batch, side, num_positions = convolution.x.shape[0], convolution.x.shape[-1], convolution.num_positions
    if max(convolution.stride) > 1:
        return side >= 20 or num_positions >= 6_144
    return batch < FEW_SAMPLES or not 1_650 <= num_positions < 19_700
