"""Partial sums of dilated windows of three taps by three in single precision, of 256 channels and more.

With small gaps the tiles of the last wave are shared out among multiprocessors, as without gaps (cudnn_shared_tiles.py,
but other tiles); with large ones kernels write in place and split the sum of the weight's gradient into whole weights.
Read off 992 problems on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-30, benchmarks/kernels): 256 to 2,048 channels
to 256 filters, and 512 to 512, over pictures of 24 x 24 to 65 x 65, with gaps of two and of twelve.

Limitations:
    Gaps up to four are taken to be as those of two, larger ones as those of twelve. How often the sum is split with
    large gaps changes with the picture's side, and was read off nine.
"""

from peaksight.virtual_gpu.kernels import cudnn_shared_tiles as shared
from peaksight.virtual_gpu.kernels.convolution_problem import TILE, TILE_BYTES, Convolution
from peaksight.virtual_gpu.kernels.cudnn_last_waves import num_sums
from peaksight.virtual_gpu.kernels.cudnn_tiles import HIGH, PAIRED, WIDE, Tiles
from peaksight.virtual_gpu.kernels.reductions import div_up

SMALL_SIDE = 3
LARGEST_SMALL_GAP = 4
# Channels and filters between those that were measured.
FEWEST = 192
TO_512 = 384
FROM_320 = range(288, 416)
FROM_512 = range(416, 736)
FROM_960 = 736
MANY_POSITIONS = 8_000
SEVERAL_POSITIONS = 3_000
MANY_POSITIONS_OF_GRADIENT = 7_000
LARGE_SIDE = 56
FEW_SAMPLES = 4
POSITIONS_OF_PART = 224
# Positions for which 256 and 320 channels split the sum with large gaps.
SPLIT_POSITIONS = range(2_048, 9_217)
# The largest side of a picture, and the parts for several pictures and for one.
PARTS_OF_SIDES = ((26, 7, 2), (30, 6, 6), (32, 8, 4), (36, 5, 9), (44, 7, 7), (54, 18, 18))
PARTS_OF_LARGE, PARTS_OF_FEW_LARGE = 4, 2


def has_many(convolution: Convolution) -> bool:
    """Whether a window of three taps by three has so many channels and filters, and channels don't come last."""
    is_window = convolution.kernel == (SMALL_SIDE, SMALL_SIDE) and not convolution.is_channels_last
    return is_window and min(convolution.channels, convolution.filters) >= FEWEST and max(convolution.stride) == 1


def are_of(convolution: Convolution) -> bool:
    """Whether the last tiles of such a window may be shared out: those of small gaps."""
    return has_many(convolution) and max(convolution.dilation) <= LARGEST_SMALL_GAP


def forward(convolution: Convolution) -> int:
    """Bytes of partial sums for `y`, beside the copies."""
    tiles = _tiles_to_many(convolution) if convolution.filters >= TO_512 else _tiles_to_256(convolution)
    if tiles is None:
        return 0
    steps = shared.num_steps(convolution.channels)
    return shared.partial_sums(convolution.num_positions, convolution.filters, steps, tiles)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes of partial sums for the gradient of `x`, beside the copies: over many positions."""
    if convolution.num_positions < MANY_POSITIONS_OF_GRADIENT:
        return 0
    steps = shared.num_steps(convolution.filters)
    return shared.partial_sums(convolution.num_positions, convolution.channels, steps, HIGH)


def gradient_of_weight(convolution: Convolution, num_multiprocessors: int) -> int | None:
    """Bytes of partial sums for the gradient of the weight, None where it is not of those to 256 filters."""
    if not has_many(convolution) or convolution.filters >= TO_512:
        return None
    if are_of(convolution):
        return _sums_of_last_tiles(convolution, num_multiprocessors)
    return _num_parts(convolution) * convolution.weight.nbytes


def _tiles_to_256(convolution: Convolution) -> Tiles | None:
    num_positions, channels = convolution.num_positions, convolution.channels
    if channels in FROM_320:
        return None
    if num_positions >= MANY_POSITIONS:
        return WIDE
    return HIGH if channels >= FROM_960 and num_positions >= SEVERAL_POSITIONS else None


def _tiles_to_many(convolution: Convolution) -> Tiles | None:
    if convolution.num_positions >= MANY_POSITIONS:
        return HIGH
    if convolution.num_positions < SEVERAL_POSITIONS:
        return None
    return WIDE if convolution.x.shape[-1] < LARGE_SIDE else PAIRED


def _sums_of_last_tiles(convolution: Convolution, num_multiprocessors: int) -> int:
    """Tiles of each tap, of half as many columns for 512 channels; of few channels only those of some pictures."""
    channels = convolution.channels
    if channels < FROM_512[0] and convolution.x.shape[0] < FEW_SAMPLES:
        return 0
    columns, tile_bytes = (TILE // 2, TILE_BYTES // 2) if channels in FROM_512 else (TILE, TILE_BYTES)
    num_tiles = div_up(convolution.filters, TILE) * div_up(channels, columns) * SMALL_SIDE**2
    most_parts = convolution.num_positions // POSITIONS_OF_PART
    return tile_bytes * num_sums(num_tiles, num_multiprocessors, most_parts=most_parts)


def _num_parts(convolution: Convolution) -> int:
    """Whole weights beside the result with large gaps."""
    num_samples, channels, _, side = convolution.x.shape
    if channels < FROM_960 and (channels in FROM_512 or convolution.num_positions not in SPLIT_POSITIONS):
        return 0
    for largest_side, num_parts, num_parts_of_one in PARTS_OF_SIDES:
        if side <= largest_side:
            return num_parts if num_samples > 1 else num_parts_of_one
    return PARTS_OF_LARGE if num_samples >= FEW_SAMPLES else PARTS_OF_FEW_LARGE
