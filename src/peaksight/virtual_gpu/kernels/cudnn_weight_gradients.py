"""The workspaces of cuDNN's weight gradients: copies, and partial sums of what multiprocessors share.

The gradient is a product of few rows and columns over very many positions. Its tiles are too few for the card, so
the positions are split, and each part leaves its sum in single precision. A product of matrices goes image by image.

Limitations:
    How often cuDNN splits is read off 200 shapes on cards with 132 multiprocessors; some kernels take up to 17 MB
    more.
"""

from math import inf, prod

from peaksight.virtual_gpu.kernels import cudnn_dilated_convolutions as dilated
from peaksight.virtual_gpu.kernels import cudnn_ending_windows as ending
from peaksight.virtual_gpu.kernels import cudnn_groups_in_half as grouped
from peaksight.virtual_gpu.kernels import cudnn_patches as patches
from peaksight.virtual_gpu.kernels import cudnn_products_in_half as in_half
from peaksight.virtual_gpu.kernels import cudnn_single_steps as steps
from peaksight.virtual_gpu.kernels import cudnn_small_windows as small
from peaksight.virtual_gpu.kernels import cudnn_transforms, depthwise_convolutions
from peaksight.virtual_gpu.kernels.convolution_kinds import (
    FEW_CHANNELS,
    FEW_POSITIONS,
    LARGE_BATCH,
    LARGE_WEIGHT,
    has_few_in_groups,
    has_large_window,
    has_long_groups,
    has_narrow_groups,
    padding,
    steps_to_few_positions,
    widened_copies,
)
from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, SMALL_WINDOW, TILE, TILE_BYTES, Convolution
from peaksight.virtual_gpu.kernels.cudnn_last_waves import num_sums
from peaksight.virtual_gpu.kernels.reductions import div_up

MOST_IMAGEWISE_BYTES = 1 << 26
MANY_SUMS_BYTES = 20 << 20
LARGE_IMAGE = 1 << 12
MANY_POSITIONS = 24 << 10
MANY_FILTERS = 256
POSITIONS_OF_IMAGE_PART = 536
POSITIONS_OF_LAST_PART = 224
FEWEST_POSITIONS = 784
POSITIONS_OF_PRODUCT_PART = 80
MANY_TILES = 16
FEW_ROWS = 32
MANY_ROWS = 96
HEAD_FILTERS = 16
HALF_TILED = {(256, 512): inf, (128, 256): 15_000, (128, 128): 15_000}
STEPS_TO_512 = 7_000
POSITIONS_OF_HALF_TILE = 784
MOST_PRODUCT_PARTS = 256


def gradient_of_weight(convolution: Convolution, num_multiprocessors: int) -> int:
    """Bytes of the workspace for the gradient of the weight."""
    if convolution.is_depthwise:
        return depthwise_convolutions.gradient_of_weight(convolution, num_multiprocessors)
    if has_narrow_groups(convolution):
        is_widened = convolution.is_half and convolution.is_channels_last and prod(convolution.kernel) > 1
        return widened_copies(convolution) if is_widened else 0
    if (of_groups := grouped.gradient_of_weight(convolution)) is not None:
        return of_groups
    convolution = convolution.in_eights()
    if convolution.is_product and prod(convolution.x.shape[2:]) == 1 and not convolution.is_half:
        return 0
    if ending.takes_them(convolution):
        return ending.gradient_of_weight(convolution)
    of_transform = cudnn_transforms.gradient_of_weight(convolution)
    if of_transform is not None:
        return of_transform
    if dilated.splits_the_sum(convolution):
        return dilated.gradient_of_weight(convolution, num_multiprocessors)
    if has_few_in_groups(convolution) and convolution.is_half:
        return 0
    if steps_to_few_positions(convolution) and convolution.num_positions < FEW_POSITIONS:
        return 0
    if has_long_groups(convolution):
        return convolution.copies() // (1 if convolution.is_half else 2)
    if patches.has_split_sums(convolution):
        return patches.gradient_of_weight(convolution)
    if convolution.channels < FEW_CHANNELS:
        return _of_few_channels(convolution, num_multiprocessors)
    if steps.takes_them(convolution) and steps.lies_for_weight(convolution):
        return 0
    partial = FLOAT_BYTES * convolution.weight.numel()
    if not convolution.is_product:
        partial = partial * _num_rows(convolution) // convolution.filters
    if _is_large_image(convolution):
        return _of_large_image(convolution, partial, num_multiprocessors)
    if _goes_imagewise(convolution, partial):
        return partial * convolution.x.shape[0]
    return _copied(convolution) + _partial_sums(convolution, partial, num_multiprocessors)


def _copied(convolution: Convolution) -> int:
    """Groups and large windows in single precision have kernels for other layouts only."""
    if not convolution.is_channels_last:
        return convolution.copies()
    if has_large_window(convolution):
        return convolution.x.nbytes + convolution.y.nbytes
    return convolution.copies() if convolution.groups > 1 and not convolution.is_half else 0


def _goes_imagewise(convolution: Convolution, partial_bytes: int) -> bool:
    """Whether there is a sum for each image.

    In single precision there isn't for few channels of many positions in batches below 64, nor for sums of 64 MiB that
    exceed the copies, or of 20 MiB that exceed them twice.
    """
    if not convolution.is_product or convolution.is_channels_last:
        return False
    num_bytes = partial_bytes * convolution.x.shape[0]
    if convolution.is_half:
        return num_bytes <= in_half.most_imagewise_bytes(convolution)
    if _is_narrow(convolution) and convolution.num_positions >= MANY_POSITIONS:
        return False
    copied = convolution.copies()
    if num_bytes <= min(MOST_IMAGEWISE_BYTES, 17 * copied // 10):
        return True
    return num_bytes < max(copied, MANY_SUMS_BYTES, min(MOST_IMAGEWISE_BYTES, 2 * copied))


def _is_narrow(convolution: Convolution) -> bool:
    """Few channels to fewer than 256, or 64 to as many, in batches below 64: 1,600 of 1,640 single taps over images.

    So are the heads of detectors, of 256 channels to 3 and to 12 filters, as a measured Faster R-CNN has them.
    """
    channels, filters = convolution.channels, convolution.filters
    if len(convolution.kernel) != 2 or convolution.x.shape[0] >= LARGE_BATCH:
        return False
    is_head = channels >= MANY_FILTERS and filters < HEAD_FILTERS and filters % 8 != 0
    return is_head or (channels <= FEW_ROWS and filters < MANY_FILTERS) or channels == TILE // 2 >= filters


def _is_large_image(convolution: Convolution) -> bool:
    """A single image in single precision, which is not copied."""
    is_image = len(convolution.kernel) == 2 and convolution.x.shape[0] == 1 and not convolution.is_channels_last
    return is_image and convolution.is_product and not convolution.is_half and convolution.num_positions >= LARGE_IMAGE


def _of_large_image(convolution: Convolution, partial_bytes: int, num_multiprocessors: int) -> int:
    """Parts of a single image, of half a tile at least."""
    num_parts = min(num_multiprocessors, convolution.num_positions // POSITIONS_OF_IMAGE_PART)
    return num_parts * max(TILE_BYTES // 2, partial_bytes)


def _partial_sums(convolution: Convolution, partial_bytes: int, num_multiprocessors: int) -> int:
    """As many as there are multiprocessors for each tile, but not for less than so many positions.

    In single precision parts are whole tiles where there are nearly as many rows, as of 96 and of 192 filters; and
    where a single wave of tiles fills the card, the tiles of the last wave are split.
    """
    if convolution.is_product and convolution.is_channels_last:
        return _of_product_in_channels_last(convolution, partial_bytes, num_multiprocessors)
    if small.takes_them(convolution):
        return small.partial_sums(convolution, num_multiprocessors)
    if (of_half_tiles := _sums_of_half_tiles(convolution, num_multiprocessors)) is not None:
        return of_half_tiles
    num_tiles = _num_tiles(convolution)
    if not (convolution.is_half or convolution.is_product) and convolution.y.shape[1] >= MANY_ROWS:
        partial_bytes = max(partial_bytes, num_tiles * TILE_BYTES)
    splits = min(_most_splits(convolution, num_tiles), num_multiprocessors // num_tiles)
    if splits > 1:
        return splits * partial_bytes
    if convolution.is_half or convolution.is_product or num_tiles < num_multiprocessors:
        return 0
    most_parts = convolution.num_positions // POSITIONS_OF_LAST_PART
    return TILE_BYTES * num_sums(num_tiles, num_multiprocessors, most_parts=most_parts)


def _sums_of_half_tiles(convolution: Convolution, num_multiprocessors: int) -> int | None:
    """Tiles of half as many columns share out the last wave, of images in single precision with three taps by three.

    To 512 filters of 256 channels; of 128 channels to 128 and 256 over few positions.
    """
    is_image = convolution.is_of_images and not convolution.is_half and not convolution.is_channels_last
    ends = (convolution.channels, convolution.filters)
    most_positions = HALF_TILED.get(ends, 0)
    if not is_image or convolution.kernel != (3, 3) or convolution.num_positions > most_positions:
        return None
    if ends[1] == MANY_FILTERS * 2 and max(convolution.stride) > 1 and convolution.num_positions < STEPS_TO_512:
        return 0
    num_tiles = div_up(ends[1], TILE) * div_up(ends[0], TILE // 2) * prod(convolution.kernel)
    most_parts = convolution.num_positions // POSITIONS_OF_HALF_TILE
    return TILE_BYTES // 2 * num_sums(num_tiles, num_multiprocessors, most_parts=most_parts)


def _most_splits(convolution: Convolution, num_tiles: int) -> int:
    if not convolution.is_half:
        return min(14 if len(convolution.kernel) < 3 else 4, convolution.num_positions // 1024)
    if prod(convolution.kernel) == 1:
        return min(7, convolution.num_positions // 8192)
    return min(13, convolution.num_positions // (3840 if num_tiles < MANY_TILES else 8192))


def _num_rows(convolution: Convolution) -> int:
    """Output channels, of which few, as of images, fill half a tile."""
    return convolution.filters if convolution.filters >= FEW_ROWS or convolution.groups > 1 else TILE // 2


def _num_tiles(convolution: Convolution) -> int:
    """Tiles of the product: square ones, smaller where there are few output channels."""
    num_rows = convolution.filters
    side = TILE if num_rows < FEW_ROWS else min(TILE, num_rows)
    return div_up(num_rows, side) * div_up(prod(convolution.weight.shape[1:]), side)


def _of_product_in_channels_last(convolution: Convolution, partial_bytes: int, num_multiprocessors: int) -> int:
    splits = min(MOST_PRODUCT_PARTS, num_multiprocessors * TILE_BYTES // partial_bytes)
    if convolution.is_half:
        splits = min(splits, convolution.num_positions // 2048) if convolution.weight.numel() < LARGE_WEIGHT else 0
    else:
        is_split = convolution.num_positions > FEWEST_POSITIONS
        splits = min(splits, convolution.num_positions // POSITIONS_OF_PRODUCT_PART) if is_split else 0
    return splits * partial_bytes if splits > 1 else 0


def _of_few_channels(convolution: Convolution, num_multiprocessors: int) -> int:
    """Copies with padded channels, and two parts a multiprocessor in tiles of padded channels."""
    num_dims = len(convolution.kernel)
    if not convolution.is_half and num_dims < 3 and (num_dims == 1 or prod(convolution.kernel) <= SMALL_WINDOW):
        return 0
    alignment = padding(convolution) if convolution.is_half or num_dims == 3 else 4
    copied = convolution.copies(alignment, y=not (convolution.is_half and convolution.is_channels_last))
    if not (convolution.overlaps or convolution.is_half) or (convolution.is_half and alignment == 4):
        return copied
    columns = alignment * prod(convolution.kernel)
    rows = convolution.weight.shape[0]
    num_parts = div_up(2 * num_multiprocessors, div_up(rows, TILE) * div_up(columns, TILE))
    return copied + num_parts * FLOAT_BYTES * rows * columns
