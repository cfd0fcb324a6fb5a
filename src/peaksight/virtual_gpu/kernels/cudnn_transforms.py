"""Weight gradients of images in single precision that cuDNN takes by a transform: Winograd's, or Fourier's.

Both turn a window's sum into a product for each number of a tile, and their workspaces hold the tiles: to the byte in
all of 59 problems on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-28 and -29, benchmarks/kernels and a network for
Atari games). Winograd's are of three taps by three: six numbers by six for four pixels by four. Fourier's hold the
picture with its padding, in a power of two.

Limitations:
    Which problems take one is cuDNN's choice: of 239 with three taps by three five are told wrong, and of pictures
    that are not padded one was measured.
"""

from peaksight.virtual_gpu.kernels import cudnn_fourier, cudnn_winograd
from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

FEWEST_CHANNELS = 32
FEWEST_FILTERS = 24
MOST_FILTERS = 64
POSITIONS = range(128, 8193)
POSITIONS_OF_64 = range(8193, 14_000)
MOST_PAIRS = 82_000
MOST_WORK = 160_000_000
SMALL_IMAGE = 24
MOST_WORK_OF_WIDENING = 45_000_000
FEWEST_FOURIER_POSITIONS = 1 << 10
MOST_FOURIER_POSITIONS = 1 << 14
MANY_POSITIONS = range(1 << 14, 1 << 15)


def gradient_of_weight(convolution: Convolution) -> int | None:
    """Bytes of the workspace for the gradient of the weight, None where no transform is taken."""
    if not _may_be_transformed(convolution):
        return None
    if _is_winograd(convolution):
        return cudnn_winograd.gradient_of_weight(convolution)
    return cudnn_fourier.gradient_of_weight(convolution) if _is_fourier(convolution) else None


def _may_be_transformed(convolution: Convolution) -> bool:
    is_image = len(convolution.kernel) == 2 and convolution.groups == 1 and not convolution.is_channels_last
    is_step = max(convolution.stride) > 1 or max(convolution.dilation) > 1
    return is_image and not is_step and not convolution.is_half and convolution.channels >= FEWEST_CHANNELS


def _is_winograd(convolution: Convolution) -> bool:
    """Three taps by three over a padded image: not too much work, and less where a small one has twice the filters."""
    filters, channels = convolution.weight.shape[:2]
    pairs, work = filters * channels, filters * channels * convolution.num_positions
    if convolution.kernel != (3, 3) or convolution.x.shape[2:] != convolution.y.shape[2:] or filters < FEWEST_FILTERS:
        return False
    if filters == channels == MOST_FILTERS and convolution.num_positions in POSITIONS_OF_64:
        return True
    is_widening = filters >= 2 * channels and max(convolution.y.shape[2:]) < SMALL_IMAGE
    most_work = MOST_WORK_OF_WIDENING if is_widening else MOST_WORK
    return convolution.num_positions in POSITIONS and pairs <= MOST_PAIRS and work <= most_work


def _is_fourier(convolution: Convolution) -> bool:
    """Windows of five taps by five and more, up to half of the picture, to few filters and not too many positions."""
    filters, num_positions = convolution.y.shape[1], convolution.num_positions
    if not FEWEST_FILTERS <= filters <= MOST_FILTERS:
        return False
    if _is_of_small_pictures(convolution):
        return num_positions in MANY_POSITIONS
    is_large = min(convolution.kernel) > 4 and 2 * max(convolution.kernel) <= min(convolution.x.shape[2:])
    most_positions = MOST_FOURIER_POSITIONS * (2 if filters < MOST_FILTERS else 1)
    return is_large and FEWEST_FOURIER_POSITIONS <= num_positions <= most_positions


def _is_of_small_pictures(convolution: Convolution) -> bool:
    """Three taps by three over pictures that fit the smallest tile; read off three, of 96 to 512 pictures."""
    return convolution.kernel == (3, 3) and cudnn_fourier.tile_of(convolution) == cudnn_fourier.SMALLEST_TILE
