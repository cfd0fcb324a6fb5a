"""The partial sums of a weight's gradient in half, of windows up to three taps by three: a product for each tap.

The positions are shared out until the tiles of all taps fill the card, and each part leaves its tiles in single
precision. Read off 1,223 problems on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-29, benchmarks/kernels): 727 of
1,024 with three taps by three come within a MiB, and the mean difference is 1.6 MiB.

Limitations:
    How few positions are still shared out is cuDNN's choice; in between, half as many parts or two are taken.
"""

from math import prod

from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, TILE, Convolution
from peaksight.virtual_gpu.kernels.cudnn_last_waves import num_sums
from peaksight.virtual_gpu.kernels.reductions import div_up

HALF_TILE = TILE // 2
DOUBLE_TILE = 2 * TILE
MOST_TAPS = 9
MOST_PARTS = 13
FEWEST_POSITIONS = 1260
FEWEST_POSITIONS_OF_TILE = 1900
FEWEST_POSITIONS_OF_LARGE_TILE = 7168
MANY_FILTERS = 512
FROM_MANY = (256, 512)
FEWEST_POSITIONS_OF_WAVE = 4_700
LARGE_BATCH = 80
MULTIPROCESSORS_OF_WAVE = 120
POSITIONS_OF_PART = 1176
POSITIONS_OF_HALF = 24 << 10
POSITIONS_OF_TWO = 16 << 10


def takes_them(convolution: Convolution) -> bool:
    """Whether an image in half has a window of a few taps, without groups and gaps."""
    is_image = len(convolution.kernel) == 2 and convolution.groups == max(convolution.dilation) == 1
    return is_image and convolution.is_half and 1 < prod(convolution.kernel) <= MOST_TAPS


def partial_sums(convolution: Convolution, num_multiprocessors: int) -> int:
    """Bytes of all parts, beside what is copied."""
    is_largest = prod(convolution.kernel) == MOST_TAPS
    if is_largest and convolution.filters == MANY_FILTERS and convolution.channels in FROM_MANY:
        return _sums_to_512(convolution)
    rows, columns = _tile(convolution)
    num_tiles = div_up(convolution.filters, rows) * div_up(convolution.channels, columns) * prod(convolution.kernel)
    most_parts = min(MOST_PARTS, num_multiprocessors // num_tiles)
    num_parts = _num_parts(convolution.num_positions, most_parts, _fewest_positions(rows, columns))
    return num_parts * num_tiles * rows * columns * FLOAT_BYTES if num_parts > 1 else 0


def _sums_to_512(convolution: Convolution) -> int:
    """To 512 filters the last wave is shared out: of 256 channels by half tiles, of 512 in large batches alone.

    Read off 180 problems of residual networks (2026-11-30, benchmarks/kernels).
    """
    channels = convolution.channels
    is_many = channels == MANY_FILTERS
    if convolution.num_positions < FEWEST_POSITIONS_OF_WAVE or (is_many and convolution.x.shape[0] < LARGE_BATCH):
        return 0
    columns = TILE if is_many else HALF_TILE
    num_tiles = div_up(convolution.filters, TILE) * div_up(channels, columns) * prod(convolution.kernel)
    most_parts = convolution.num_positions // (POSITIONS_OF_PART * columns // HALF_TILE)
    return TILE * columns * FLOAT_BYTES * num_sums(num_tiles, MULTIPROCESSORS_OF_WAVE, most_parts=most_parts)


def _tile(convolution: Convolution) -> tuple[int, int]:
    """Rows and columns: few filters have wide tiles, and many have long ones, where the others fill them."""
    filters, channels = convolution.filters, convolution.channels
    rows = HALF_TILE if filters <= HALF_TILE else DOUBLE_TILE if filters % DOUBLE_TILE == 0 else TILE
    if channels <= HALF_TILE:
        return rows, HALF_TILE
    return rows, DOUBLE_TILE if rows == HALF_TILE and channels % DOUBLE_TILE == 0 else TILE


def _fewest_positions(rows: int, columns: int) -> int:
    """Of a part."""
    if rows == HALF_TILE:
        return FEWEST_POSITIONS
    return FEWEST_POSITIONS_OF_TILE if (rows, columns) == (TILE, HALF_TILE) else FEWEST_POSITIONS_OF_LARGE_TILE


def _num_parts(num_positions: int, most_parts: int, fewest_positions: int) -> int:
    if most_parts < 2 or num_positions >= most_parts * fewest_positions:
        return most_parts
    if num_positions >= POSITIONS_OF_HALF:
        return most_parts // 2
    return 2 if num_positions >= POSITIONS_OF_TWO else 0
