"""Which products of matrices over pixels cuDNN copies in half, and which gradients of the weight it sums by image.

Rows of pixels that load by eights seldom need copies, those that load by fours do where weight and batch are large,
odd ones nearly always. Read off single calls on an H200 (torch 2.11+cu130, cuDNN 9.19, benchmarks/kernels): single
taps over 7 x 7, 14 x 14 and 28 x 28 pixels, mostly from channels to four times as many and back.

Limitations:
    Gradients of the input in float16 may copy the weight and more. Single batches differ from their neighbours.
"""

from math import inf, prod

from peaksight.virtual_gpu.kernels.convolution_kinds import LARGE_BATCH, LARGE_WEIGHT
from peaksight.virtual_gpu.kernels.convolution_problem import TILE, Convolution

SHORT_ROW = 200
LONG_ROW = 600
LONG_ROW_OF_LARGEST = 800
LONGEST_COPIED_ROW = 1024
SMALL_BATCH = 16
MEDIUM_BATCH = 32
LARGER_BATCH = 96
VERY_LARGE_BATCH = 112
LARGEST_BATCHES = 128
HUGE_BATCH = 192
COPIED_WEIGHT = 400 << 10
VERY_LARGE_WEIGHT = 1 << 20
FEWEST_COPIED = 75_000
LARGEST_WEIGHTS = 3 << 19
MANY_CHANNELS = 1024
VERY_MANY = 2048
MANY_POSITIONS = 1 << 13
MANY_FILTERS = 256
FILTERS_OF_WHOLE_TILES = 512
MOST_OF_FEW = 384
ALIGNED_CHANNELS = 32
MOST_EVEN_BYTES = 1 << 24
SUMMED_BATCHES = range(16, 24)
SUMMED_CHANNELS = range(864, 1537)


def are_copied(convolution: Convolution) -> bool:
    """Whether `x` and `y` are copied for `y`."""
    length, size, samples = _length(convolution), convolution.weight.numel(), convolution.x.shape[0]
    if length % 8 == 0:
        return _are_even_copied(convolution)
    if length > SHORT_ROW:
        return _are_long_copied(convolution)
    if samples < SMALL_BATCH or _is_square_of_few(convolution):
        return size >= VERY_LARGE_WEIGHT and convolution.channels >= MANY_CHANNELS
    if size < COPIED_WEIGHT or samples < LARGE_BATCH:
        return False
    if samples >= LARGEST_BATCHES:
        return True
    if _widens(convolution):
        return size < LARGEST_WEIGHTS or samples >= LARGER_BATCH
    return convolution.filters == FILTERS_OF_WHOLE_TILES


def _are_long_copied(convolution: Convolution) -> bool:
    """Rows of 18 x 18 pixels and more that load by fours: in large batches of 1024 channels alone, up to 26 x 26."""
    size = convolution.weight.numel()
    if convolution.x.shape[0] < LARGE_BATCH:
        return size >= VERY_LARGE_WEIGHT
    longest = LONG_ROW_OF_LARGEST if size > LARGEST_WEIGHTS else LONG_ROW
    return size >= LARGE_WEIGHT and convolution.channels >= MANY_CHANNELS and _length(convolution) < longest


def _is_square_of_few(convolution: Convolution) -> bool:
    """1024 channels and more to as many filters or more, over up to 8192 positions: six problems of seven."""
    is_square = min(convolution.channels, convolution.filters) >= MANY_CHANNELS
    return is_square and convolution.num_positions < MANY_POSITIONS


def _are_even_copied(convolution: Convolution) -> bool:
    """Rows that load by eights: in batches of 64 and more, to fewer filters below 96; not of powers of two.

    So are 24 problems of 24 over 28 x 28 pixels, and one over 24 x 24.
    """
    samples, size = convolution.x.shape[0], convolution.weight.numel()
    if size < COPIED_WEIGHT or samples < LARGE_BATCH or _length(convolution) >= LONGEST_COPIED_ROW:
        return False
    if min(convolution.channels, convolution.filters).bit_count() == 1:
        return size > LARGEST_WEIGHTS
    return _widens(convolution) or samples < LARGER_BATCH


def are_copied_for_gradient(convolution: Convolution) -> bool:
    """Whether they are copied for the gradient of `x`, where rows load by fours alone: of 18 x 18 pixels and more not.

    From 2048 filters they are in all batches, unless to 1024 channels; to a quarter of them the batch decides.
    """
    size, samples = convolution.weight.numel(), convolution.x.shape[0]
    if _length(convolution) % 8 == 0 or _length(convolution) > SHORT_ROW:
        return False
    if _widens(convolution):
        if convolution.filters >= VERY_MANY and size >= LARGE_WEIGHT:
            return samples >= LARGE_BATCH or convolution.channels < MANY_CHANNELS
        return convolution.filters == MANY_CHANNELS and size >= LARGE_WEIGHT and samples >= LARGEST_BATCHES
    if size > LARGEST_WEIGHTS:
        return samples >= LARGER_BATCH
    if convolution.channels >= VERY_MANY and size >= VERY_LARGE_WEIGHT:
        return samples >= SMALL_BATCH
    if LARGE_BATCH <= samples < LARGER_BATCH and _narrows_in_tiles(convolution):
        return True
    return size >= COPIED_WEIGHT and LARGE_BATCH <= samples < HUGE_BATCH


def _narrows_in_tiles(convolution: Convolution) -> bool:
    """Channels in multiples of 32 to fewer filters, not a power of two: so five of six problems over 14 x 14 pixels."""
    is_uneven = convolution.filters.bit_count() > 1 and convolution.channels % ALIGNED_CHANNELS == 0
    return is_uneven and convolution.weight.numel() >= FEWEST_COPIED


def most_imagewise_bytes(convolution: Convolution) -> float:
    """Up to how many bytes the gradient of the weight has a sum for each image.

    Twice the copies where rows can be loaded by eights, and the copies where not even by fours.
    """
    length, copied = _length(convolution), convolution.copies()
    if length % 8 == 0:
        return 2 * copied
    if length % 4 == 0:
        return _most_bytes_by_fours(convolution, copied)
    if length > 1 and (_widens_few(convolution) or _is_summed_by_image(convolution)):
        return inf
    return copied if length > 1 else 0


def _most_bytes_by_fours(convolution: Convolution, copied: int) -> float:
    """In batches below 16 up to 16 MiB; to fewer filters below 8, but of 1024 to 1536 channels in 16, too.

    To 1280 filters of 320 channels they are larger in batches of 64 to 128.
    """
    most = min(max(copied, MOST_EVEN_BYTES), 7 * copied // 2)
    samples = convolution.x.shape[0]
    if not TILE <= _length(convolution) <= SHORT_ROW:
        return most
    if _widens(convolution):
        is_many = MANY_FILTERS < convolution.channels < MOST_OF_FEW and LARGE_BATCH <= samples < HUGE_BATCH
        return inf if is_many else most if samples < SMALL_BATCH else copied
    is_quartered = convolution.channels >= 3 * convolution.filters and _is_summed_by_image(convolution)
    if samples in SUMMED_BATCHES and is_quartered:
        return inf
    return most if samples < SMALL_BATCH // 2 else copied * 6 // 5


def _widens_few(convolution: Convolution) -> bool:
    """In batches up to 96, up to 256 channels to half as many filters or more, up to 384 to any: 7 x 7 pixels."""
    channels = convolution.channels
    is_few = channels <= MANY_FILTERS and convolution.filters >= TILE
    return convolution.x.shape[0] < VERY_LARGE_BATCH and (is_few or MANY_FILTERS < channels <= MOST_OF_FEW)


def _is_summed_by_image(convolution: Convolution) -> bool:
    """Of 864 to 1536 channels to 128 filters, or 1024 to 256 and more: in batches below 32; of 64 to a quarter."""
    channels, filters, samples = convolution.channels, convolution.filters, convolution.x.shape[0]
    are_filters_so = filters == TILE or (filters >= MANY_FILTERS and channels >= MANY_CHANNELS)
    if channels not in SUMMED_CHANNELS or not are_filters_so or _widens(convolution):
        return False
    is_quartered = LARGE_BATCH <= samples < LARGER_BATCH and channels >= 4 * filters
    return samples < MEDIUM_BATCH or is_quartered


def _widens(convolution: Convolution) -> bool:
    return convolution.filters > convolution.channels


def _length(convolution: Convolution) -> int:
    return prod(convolution.x.shape[2:])
