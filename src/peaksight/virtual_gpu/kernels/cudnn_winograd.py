"""Winograd's transform: six numbers by six for four pixels by four of three taps by three, or 13 for nine of five.

The workspace holds the tiles of `x`, `y` and the weight in single precision, whichever of them is made: engines 6, 7
and 17 of cuDNN 9.19, to the byte in 1,666 of 1,668 plans on an H200 (benchmarks/kernels). Of groups eight go at a time.
"""

from math import prod

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, FLOAT_BYTES, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

# Sides of a tile in pixels and in numbers, by taps.
SIDES: dict[tuple[int, ...], tuple[int, int]] = {(3, 3): (4, 6), (5, 5): (9, 13)}
SMALL_KERNEL = (3, 3)
FEWEST_SAMPLES = 16


def fits(convolution: Convolution) -> bool:
    """Whether windows are of its kind and move by one."""
    return convolution.kernel in SIDES and prod(convolution.stride) == max(convolution.dilation) == 1


def of_result(convolution: Convolution) -> int:
    """Bytes for `x` or `y`: tiles of sixteen samples at least."""
    return _of_samples(convolution.eight_groups(), max(FEWEST_SAMPLES, convolution.x.shape[0]))


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes for the gradient of the weight: of three taps by three those of all samples, however few."""
    is_small = convolution.kernel == SMALL_KERNEL
    return _of_samples(convolution.eight_groups(), convolution.x.shape[0]) if is_small else of_result(convolution)


def _of_samples(part: Convolution, num_samples: int) -> int:
    """All tiles, and copies of what has channels last."""
    pixels, side_of_numbers = SIDES[part.kernel]
    num_tiles = num_samples * prod(div_up(side, pixels) for side in part.y.shape[2:])
    numbers = prod(part.weight.shape[:2]) + num_tiles * (part.filters + part.x.shape[1])
    copies = part.x.nbytes + part.y.nbytes + part.weight.nbytes + DESCRIPTOR_BYTES * part.groups
    return FLOAT_BYTES * side_of_numbers**2 * numbers + (copies if part.is_channels_last else 0)
