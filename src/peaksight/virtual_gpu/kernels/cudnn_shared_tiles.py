"""The partial sums of cuDNN's products in single precision whose last tiles are shared out among multiprocessors.

A product's tiles go over the card in waves, and clusters of multiprocessors take a wave together. Where the last wave
is less than half full, each of its tiles is summed in parts, and each part leaves its sum in the workspace. Read off
the plans of engines 67 and 71 of cuDNN 9.19 for convolutions in single precision on an H200 (ask_cudnn_convolutions.py
of benchmarks/kernels), right within 8 KiB in nearly all of 486 for windows of three taps by three.

Limitations:
    Which tiles run, and whether the last are shared, is cuDNN's choice (cudnn_tiles.py, cudnn_gradient_tiles.py). Other
    windows are taken not to share.
"""

from peaksight.virtual_gpu.kernels import cudnn_gradient_tiles, cudnn_tiles
from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, TILE, TILE_BYTES, Convolution
from peaksight.virtual_gpu.kernels.cudnn_tiles import Tiles
from peaksight.virtual_gpu.kernels.reductions import div_up

SMALL_SIDE = 3
SHARED_SUM = 2048
MANY_TO = 512
ONE_WAVE = range(121, 133)

# Of a step of the sum, in channels; and the fewest steps of a part in the only wave, or in a later one.
CHANNELS_OF_STEP = 32
STEPS_OF_ONLY_WAVE = 16
STEPS_OF_LAST_WAVE = 5
# Of longer sums in more parts.
MANY_STEPS = 64
MANY_PARTS = 13
FEWEST_STEPS = 4


def forward(convolution: Convolution) -> int:
    """Bytes of partial sums for `y`: windows of three taps by three over images with many channels, or steps."""
    tiles = cudnn_tiles.chosen(convolution) if _may_be_shared(convolution) else None
    if not tiles:
        return _sums_of_steps(convolution)
    return partial_sums(convolution.num_positions, convolution.filters, num_steps(convolution.channels), tiles)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes of partial sums for the gradient of `x`, a product of as many positions: of windows without a stride."""
    if not _may_be_shared(convolution) or max(convolution.stride) > 1:
        return 0
    tiles, channels = cudnn_gradient_tiles.chosen(convolution), convolution.x.shape[1]
    return partial_sums(convolution.num_pixels, channels, num_steps(convolution.filters), tiles) if tiles else 0


def _may_be_shared(convolution: Convolution) -> bool:
    is_image = convolution.is_of_images and not convolution.is_transposed and max(convolution.dilation) == 1
    return is_image and set(convolution.kernel) == {SMALL_SIDE} and not convolution.is_half


def partial_sums(num_rows: int, num_columns: int, num_steps: int, tiles: Tiles) -> int:
    """Bytes of the parts of the last tiles of a product."""
    num_tiles = _padded(num_rows, tiles.rows, tiles.rows_of_cluster)
    num_tiles *= _padded(num_columns, tiles.columns, tiles.columns_of_cluster)
    num_shared = num_tiles % tiles.wave
    if not num_shared:
        return 0
    num_parts = _num_parts(num_steps, tiles.wave // num_shared, is_only=num_tiles == num_shared)
    return num_shared * num_parts * tiles.rows * tiles.columns * FLOAT_BYTES if num_parts > 1 else 0


def _padded(length: int, side: int, num_in_cluster: int) -> int:
    """Tiles along a side, in whole clusters."""
    return div_up(div_up(length, side), num_in_cluster) * num_in_cluster


def num_steps(num_channels: int) -> int:
    """Steps of a sum over so many channels of three taps by three."""
    return SMALL_SIDE**2 * div_up(num_channels, CHANNELS_OF_STEP)


def _num_parts(num_steps: int, most: int, *, is_only: bool) -> int:
    """Of a tile: a power of two that the sum has steps for, or of many steps as many as `most` even parts."""
    if not is_only and num_steps >= MANY_STEPS and most >= MANY_PARTS:
        return div_up(num_steps, max(FEWEST_STEPS, div_up(num_steps, most)))
    num_long = num_steps // (STEPS_OF_ONLY_WAVE if is_only else STEPS_OF_LAST_WAVE)
    return min(most, 1 << num_long.bit_length() - 1 if num_long else 0)


def _sums_of_steps(convolution: Convolution) -> int:
    """What tiles of a product that just fits a card of 132 multiprocessors leave, as longer sums are shared out.

    Overlapping windows with a stride over images in single precision, of sums of 2048 or more to 512 filters: read off
    18 problems of 128 tiles; 104, 112 and 120 tiles for sums of 2048, 3072 and 4096 and more.
    """
    filters = convolution.filters
    is_image = convolution.is_of_images and max(convolution.dilation) == 1
    is_step = convolution.overlaps and max(convolution.stride) > 1 and not convolution.is_transposed
    if not (is_image and is_step) or convolution.is_half or convolution.sum_length < SHARED_SUM or filters < MANY_TO:
        return 0
    num_tiles = div_up(convolution.num_positions, TILE) * div_up(filters, TILE)
    num_shared = 8 * min(15, 11 + convolution.sum_length // 1024)
    return num_shared * TILE_BYTES if num_tiles in ONE_WAVE else 0
