"""Which tiles cuDNN takes for the gradient of the input, of windows of three taps in single precision.

As cudnn_tiles.py: read off the first plans, of engine 71, for 63,000 problems drawn by chance, of windows without a
stride. Columns of the product are channels, and its sums go over filters; FOURFOLD and NARROW are exact in 109 of the
110 plans that the card told of them.

Limitations:
    From 144 to 255 channels tiles are taken not to be shared, as in most; some that it shares three to a cluster are
    not told.
"""

from peaksight.virtual_gpu.kernels.convolution_problem import Convolution
from peaksight.virtual_gpu.kernels.cudnn_tiles import HIGH, Tiles

NARROW = Tiles(128, 64, 5, 1, 110)
FOURFOLD = Tiles(128, 128, 4, 1, 120)
HIGH_FOURFOLD = Tiles(256, 128, 4, 1, 120)
FEWEST_POSITIONS = 1_000
# Of a large product, in elements of the gradient.
MANY_ELEMENTS = 19_100_000


def chosen(convolution: Convolution) -> Tiles | None:
    """Tiles whose last ones are shared out, None where they are not: high ones of sums over whole 64 filters."""
    tiles = _ranked(convolution)
    is_whole = convolution.filters % 64 == 0
    return tiles if is_whole or tiles not in (HIGH, HIGH_FOURFOLD) else None


def _ranked(convolution: Convolution) -> Tiles | None:
    channels, filters, num_positions = convolution.x.shape[1], convolution.filters, convolution.num_pixels
    if channels < 128:
        return _to_few(channels, filters, num_positions)
    if channels < 256:
        return _to_128(convolution) if channels < 144 else None
    if channels <= 257:
        return _to_256(convolution)
    if channels < 512:
        return _to_384(convolution)
    if channels < 513:
        return _to_512(convolution)
    return _to_640(convolution) if channels < 1024 else _to_1024(convolution)


def _to_few(channels: int, filters: int, num_positions: int) -> Tiles | None:
    if channels >= 96:
        return FOURFOLD if num_positions >= 6_000 and filters >= 96 else None
    most_positions = 18_700 if channels < 64 else num_positions
    is_shared = FEWEST_POSITIONS <= num_positions <= most_positions and channels >= 32
    return NARROW if is_shared and filters >= 256 else None


def _to_128(convolution: Convolution) -> Tiles | None:
    batch, filters, num_positions = convolution.x.shape[0], convolution.filters, convolution.num_pixels
    if not 8_192 <= num_positions < 70_000:
        return None
    if 192 <= filters < 320:
        return HIGH_FOURFOLD if batch >= 8 else None
    is_of_many = 128 <= filters < 192 and batch >= 96
    return (HIGH_FOURFOLD if num_positions < 24_576 else FOURFOLD) if is_of_many else None


def _to_256(convolution: Convolution) -> Tiles | None:
    filters, num_positions, side = convolution.filters, convolution.num_pixels, convolution.x.shape[-1]
    if num_positions < 8_192:
        return FOURFOLD if filters >= 512 and num_positions >= 1_200 and side >= 8 else None
    is_of_many_small = side < 24 and convolution.x.shape[0] >= 64 and 192 <= filters < 384
    return HIGH if side < 80 and filters >= 128 and not is_of_many_small else None


def _to_384(convolution: Convolution) -> Tiles | None:
    num_positions, side, filters = convolution.num_pixels, convolution.x.shape[-1], convolution.filters
    if num_positions < 7_500:
        is_shared = num_positions >= 1_024 if filters >= 384 else num_positions < 1_200
        return FOURFOLD if is_shared else None
    if convolution.x.shape[1] < 384 or side >= 128:
        return None
    return HIGH_FOURFOLD if side < 80 and 320 <= filters < 768 else HIGH


def _to_512(convolution: Convolution) -> Tiles | None:
    num_positions, (batch, *_, side) = convolution.num_pixels, convolution.x.shape
    if num_positions >= 5_900:
        return HIGH if batch >= 3 and 14 <= side < 160 else None
    if convolution.filters < 640:
        return FOURFOLD if num_positions >= 1_500 and side >= 16 and batch < 6 else None
    if side >= 16:
        return FOURFOLD if num_positions >= 512 else HIGH
    return HIGH if num_positions < 1_200 else HIGH_FOURFOLD


def _to_640(convolution: Convolution) -> Tiles | None:
    num_positions, (batch, channels, _, side) = convolution.num_pixels, convolution.x.shape
    if num_positions * channels >= MANY_ELEMENTS:
        return None if side >= 160 else HIGH_FOURFOLD if side < 75 else HIGH
    if convolution.filters < 1024 or num_positions * channels >= MANY_ELEMENTS // 2:
        return None
    return FOURFOLD if batch < 3 else HIGH if batch < 6 else HIGH_FOURFOLD


def _to_1024(convolution: Convolution) -> Tiles | None:
    num_positions, side = convolution.num_pixels, convolution.x.shape[-1]
    if num_positions * convolution.x.shape[1] >= MANY_ELEMENTS:
        return HIGH if side < 160 else None
    is_long = convolution.filters >= 640 or num_positions >= 1_600
    is_other = convolution.filters < 1024 and num_positions >= 8_000
    return HIGH if is_long and side < 64 and not is_other else None
