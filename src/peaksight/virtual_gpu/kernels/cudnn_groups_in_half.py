"""The workspaces of windows of three taps by three in groups in half: their channels padded to those of a kernel.

Kernels for groups run all of them, padded to the next power of two; others run eight at a time, each as a convolution
of its own, in whole eights of channels. Which run was read off the first plans of cuDNN 9.19 for 27,000 drawn problems
in each direction, asked with an H200's properties (cudnn_plans.py of benchmarks/kernels); the bytes off its plans there
and off the layers of a RegNet.

Limitations:
    Other windows, and groups of volumes and lines, are not told here.
"""

from collections.abc import Sequence
from math import inf, prod

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

FEWEST_CHANNELS = 5
SMALL_SIDE = 3
EIGHT = 8
# Channels of a group, and the fewest positions for which those up to that many are padded.
PADDED_FORWARD = ((88, 850), (96, 8_000), (127, 206), (191, 3_000), (192, 16_000), (255, 3_100))
PADDED_GRADIENT = ((191, 4_096), (256, 2_048))
COPIED_FOR_WEIGHT = range(17, 64)
FEW_GROUPS = 8
FEW_SAMPLES = 4
MANY_SAMPLES = 64
VERY_MANY_SAMPLES = 96
MANY_POSITIONS = 16_000
MANY_ROWS = 25_000


def takes_them(convolution: Convolution) -> bool:
    """Whether `convolution` is one of those here."""
    is_image = len(convolution.kernel) == 2 and set(convolution.kernel) == {SMALL_SIDE}
    is_grouped = convolution.groups > 1 and _channels(convolution) >= FEWEST_CHANNELS
    return is_image and is_grouped and convolution.is_half and max(convolution.dilation) == 1


def forward(convolution: Convolution) -> int:
    """Bytes of the workspace for `y`."""
    return _in_eights(convolution) if _runs_in_eights(convolution) else _padded(convolution)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes of the workspace for the gradient of `x`: none of 48 to 56 channels and few positions in few groups."""
    if max(convolution.stride) > 1:
        return _in_eights(convolution) if _channels(convolution) >= 40 else _padded(convolution)
    is_of_some = 48 <= _channels(convolution) <= 56 and convolution.groups <= FEW_GROUPS
    is_small = convolution.num_positions < MANY_POSITIONS and convolution.x.shape[0] >= FEW_SAMPLES
    if is_of_some and is_small:
        return 0
    return _in_eights(convolution) if _gradient_runs_in_eights(convolution) else _padded(convolution)


def gradient_of_weight(convolution: Convolution) -> int | None:
    """Bytes of copies for the gradient of the weight; None of channels that are a power of two or were not measured.

    Groups of 24 channels are padded in all of nine problems that are copied, of 48 those with a stride; partial sums
    add up to 1.8 MB.
    """
    channels = _channels(convolution)
    if not takes_them(convolution) or convolution.is_channels_last or channels not in COPIED_FOR_WEIGHT:
        return None
    if channels & (channels - 1) == 0:
        return None
    is_padded = channels < 32 or max(convolution.stride) > 1
    return _padded(convolution) if is_padded else _in_eights(convolution)


def _runs_in_eights(convolution: Convolution) -> bool:
    channels, num_samples = _channels(convolution), convolution.x.shape[0]
    if channels <= 36:
        return False
    if channels <= 48:
        return convolution.groups < FEW_GROUPS
    if channels <= 72:
        is_large = num_samples >= MANY_SAMPLES or convolution.num_positions >= MANY_ROWS
        return channels != 64 or not is_large
    if channels == 128:
        return num_samples < FEW_SAMPLES
    return convolution.num_positions < _fewest(PADDED_FORWARD, channels)


def _gradient_runs_in_eights(convolution: Convolution) -> bool:
    channels, num_samples = _channels(convolution), convolution.x.shape[0]
    if channels < 48:
        return convolution.groups == 2
    if channels <= 64:
        is_large = channels in range(49, 57) and convolution.num_positions >= MANY_POSITIONS
        return is_large or num_samples < FEW_SAMPLES
    if channels <= 88:
        return num_samples < VERY_MANY_SAMPLES
    return convolution.num_positions < _fewest(PADDED_GRADIENT, channels)


def _fewest(padded: Sequence[tuple[int, int]], channels: int) -> float:
    return next((fewest for most_channels, fewest in padded if channels <= most_channels), inf)


def _channels(convolution: Convolution) -> int:
    return max(convolution.channels, convolution.filters // convolution.groups)


def _in_eights(convolution: Convolution) -> int:
    some = convolution.eight_groups()
    channels, filters = (div_up(each, EIGHT) * EIGHT for each in _sides(some))
    is_padded = (channels, filters) != _sides(some)
    return _copies(some, channels, filters, weight=is_padded or not convolution.is_channels_last)


def _padded(convolution: Convolution) -> int:
    channels, filters = (max(EIGHT, 1 << (each - 1).bit_length()) for each in _sides(convolution))
    if convolution.is_channels_last and (channels, filters) == _sides(convolution):
        return 0
    return _copies(convolution, channels, filters)


def _sides(convolution: Convolution) -> tuple[int, int]:
    return convolution.channels, convolution.filters // convolution.groups


def _copies(convolution: Convolution, channels: int, filters: int, *, weight: bool = True) -> int:
    """Bytes of copies of tensors that have so many channels, and filters, in each group."""
    groups = convolution.groups
    of_x = convolution.x.nbytes * channels // convolution.channels
    of_y = convolution.y.nbytes * filters * groups // convolution.filters
    num_weights = groups * channels * filters * prod(convolution.kernel)
    return of_x + of_y + weight * num_weights * convolution.x.itemsize + DESCRIPTOR_BYTES
