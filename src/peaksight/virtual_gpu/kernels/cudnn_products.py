"""Which products of matrices over pixels cuDNN copies: those whose rows of pixels cannot be loaded together.

Read off single calls on an H200 (torch 2.11+cu130, cuDNN 9.19, benchmarks/kernels), of odd rows mostly 7 x 7 pixels, as
residual networks end.

Limitations:
    Of odd rows in half which are copied changes with the batch.
"""

from math import prod

from peaksight.virtual_gpu.kernels import cudnn_products_in_half as in_half
from peaksight.virtual_gpu.kernels.convolution_kinds import LARGE_BATCH
from peaksight.virtual_gpu.kernels.convolution_problem import TILE, Convolution

LONG_ROW = 100
LARGE_ODD_WEIGHT = 1 << 16
LARGE_ODD_BATCH = 80
BATCHES_IN_PLACE = range(40, 80)
VERY_MANY_FILTERS = 2048
VERY_MANY_CHANNELS = 1024
FEWEST_ODD_FILTERS = 192
FEWEST_WIDENED = 100 << 10
VERY_LARGE_WEIGHT = 1 << 20
WIDE = 256


def rows_are_odd(convolution: Convolution) -> bool:
    """Whether the rows of a product can't be loaded by fours, or of large ones in half by eights.

    In single precision only very large ones are copied for it, in half only short rows: those of 10 x 10 pixels and
    more of 30 problems aren't.
    """
    length, size = prod(convolution.x.shape[2:]), convolution.weight.numel()
    if not convolution.is_half:
        is_large = size >= VERY_LARGE_WEIGHT or _is_large_odd(convolution)
        return length % 4 != 0 and length > 1 and is_large
    return length < LONG_ROW if length % 4 != 0 else in_half.are_copied(convolution)


def is_copied_for_gradient(convolution: Convolution) -> bool:
    """Whether odd rows are copied for the gradient, too: in half of large weights alone, 130 problems of 7 x 7.

    In single precision also of 512 channels and more to 256 filters and more.
    """
    if not convolution.is_half:
        return rows_are_odd(convolution) or _narrows_odd_rows(convolution)
    if prod(convolution.x.shape[2:]) % 4 == 0:
        return in_half.are_copied_for_gradient(convolution)
    return rows_are_odd(convolution) and _is_copied_odd_in_half(convolution)


def _is_large_odd(convolution: Convolution) -> bool:
    """In single precision, to 256 filters or more in batches of 96 and more: 7 x 7 pixels."""
    is_wide = convolution.filters >= WIDE and convolution.weight.numel() >= LARGE_ODD_WEIGHT
    return is_wide and convolution.x.shape[0] >= LARGE_ODD_BATCH


def _narrows_odd_rows(convolution: Convolution) -> bool:
    length = prod(convolution.x.shape[2:])
    is_wide = convolution.channels >= 2 * WIDE and convolution.filters >= WIDE
    return length % 4 != 0 and length > 1 and is_wide


def _is_copied_odd_in_half(convolution: Convolution) -> bool:
    """To 192 filters and more, in batches of 48 and 64 to 2048; not to over twice as many channels in smaller ones.

    In batches of 80 and more to 160 filters, too, and of weights of more than 1.5 million numbers in these alone.
    """
    samples, filters, channels = convolution.x.shape[0], convolution.filters, convolution.channels
    size = convolution.weight.numel()
    if min(filters, 2 * channels) <= TILE or size < LARGE_ODD_WEIGHT:
        return False
    if filters >= VERY_MANY_FILTERS:
        return samples >= LARGE_BATCH or channels < VERY_MANY_CHANNELS
    if samples >= LARGE_ODD_BATCH:
        return True
    is_widening = filters > 2 * channels and size >= FEWEST_WIDENED
    is_in_place = filters < FEWEST_ODD_FILTERS or size > in_half.LARGEST_WEIGHTS
    return not (samples in BATCHES_IN_PLACE or is_widening or is_in_place)


def is_narrow(convolution: Convolution) -> bool:
    """A product over images in single precision, of few channels."""
    is_image = convolution.is_of_images and not convolution.is_transposed
    is_tap = convolution.is_product and not convolution.is_half
    return is_image and is_tap and convolution.channels < WIDE
