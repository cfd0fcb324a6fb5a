"""The workspaces of cuDNN's convolutions: the copies of tensors that its kernels want laid out otherwise.

Tensor-core kernels want channels last and aligned channels. What lies otherwise is copied into one workspace for the
length of one kernel. Read off single calls on an H100 and an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-28,
benchmarks/kernels and benchmarks/operators; windows and strides of single taps off 3,024 problems there).

Limitations:
    Which kernel runs is cuDNN's choice. What is not given here is listed as `convolution-workspace`.
"""

from math import prod

from peaksight.virtual_gpu.kernels import cudnn_dilated_convolutions as dilated
from peaksight.virtual_gpu.kernels import cudnn_ending_windows as ending
from peaksight.virtual_gpu.kernels import cudnn_groups_in_half as grouped
from peaksight.virtual_gpu.kernels import cudnn_in_place as in_place
from peaksight.virtual_gpu.kernels import cudnn_patches as patches
from peaksight.virtual_gpu.kernels import cudnn_products as products
from peaksight.virtual_gpu.kernels import cudnn_shared_tiles as shared
from peaksight.virtual_gpu.kernels import cudnn_single_steps as steps
from peaksight.virtual_gpu.kernels import cudnn_volumes
from peaksight.virtual_gpu.kernels import cudnn_whole_windows as whole
from peaksight.virtual_gpu.kernels.convolution_kinds import (
    FEW_CHANNELS,
    FEW_POSITIONS,
    has_few_in_groups,
    has_large_window,
    has_long_groups,
    has_narrow_groups,
    overlaps_by_half,
    padding,
    steps_by_two_of_four,
    steps_from_256_channels,
    steps_to_few_positions,
    widened_copies,
)
from peaksight.virtual_gpu.kernels.convolution_problem import (
    MANY_IN_GROUPS,
    SHORT_SUM,
    SMALL_WINDOW,
    Convolution,
)

MANY_IN_HALF = 64
MOST_SUMMED_CHANNELS = 256
MOST_POSITIONS = 1 << 17
MOST_POSITIONS_OF_LINES = 1 << 14
MANY_POSITIONS_OF_TAPS = 1 << 13
FEW_FILTERS = 64
FEW_BOTH = 32
SMALL_SIDE = 3
LONGER_SUM = 1024


def forward(convolution: Convolution) -> int:
    """Bytes of the workspace for `y`.

    Few channels are padded, to four or eight in half; small windows of them need nothing, nor do windows in single
    precision that hardly overlap.
    """
    if convolution.is_depthwise or has_narrow_groups(convolution):
        return 0
    if grouped.takes_them(convolution):
        return grouped.forward(convolution)
    convolution = convolution.in_eights(MANY_IN_HALF if convolution.is_half else MANY_IN_GROUPS)
    if ending.takes_them(convolution):
        return ending.forward(convolution)
    if whole.takes_them(convolution):
        return whole.forward(convolution)
    if dilated.takes_them(convolution):
        return dilated.forward(convolution)
    if has_long_groups(convolution):
        return 0 if convolution.is_half else convolution.copies() // 2
    if patches.takes_them(convolution):
        return patches.forward(convolution)
    if (of_volume := cudnn_volumes.forward(convolution)) is not None:
        return of_volume
    if convolution.channels < FEW_CHANNELS:
        return _forward_of_few_channels(convolution)
    if _steps_over_few(convolution):
        return 0
    if steps.takes_them(convolution):
        return steps.forward(convolution)
    if convolution.is_channels_last:
        return convolution.copies(y=False) if has_large_window(convolution) else 0
    if convolution.is_product:
        return convolution.copies() if products.rows_are_odd(convolution) or _is_grouped_half(convolution) else 0
    return convolution.copies(y=not _writes_in_place(convolution)) + shared.forward(convolution)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes of the workspace for the gradient of `x`.

    Few channels need copies where windows overlap; of groups in half they are widened to four (engine 22). Rows that
    load by fours alone want the weight too where there are fewer filters than channels; read off three.
    """
    if convolution.is_depthwise or (has_few_in_groups(convolution) and not convolution.is_half):
        return 0
    if has_narrow_groups(convolution):
        return widened_copies(convolution) if convolution.is_half and prod(convolution.kernel) > 1 else 0
    if grouped.takes_them(convolution):
        return grouped.gradient_of_input(convolution)
    convolution = convolution.in_eights(MANY_IN_HALF if convolution.is_half else MANY_IN_GROUPS)
    if ending.takes_them(convolution):
        return ending.gradient_of_input(convolution)
    if dilated.takes_them(convolution):
        return dilated.gradient_of_input(convolution)
    if has_long_groups(convolution):
        return convolution.copies() // 2 if convolution.is_half else 0
    if convolution.channels < FEW_CHANNELS:
        return _gradient_of_few_channels(convolution)
    if convolution.is_product and _is_grouped_half(convolution):
        return convolution.copies()
    if steps.takes_them(convolution):
        return steps.gradient_of_input(convolution)
    if convolution.is_channels_last or products.is_narrow(convolution) or steps_to_few_positions(convolution):
        return 0
    is_copied = not convolution.is_product or products.is_copied_for_gradient(convolution)
    is_narrowed = convolution.is_product and convolution.filters < convolution.channels
    loads_by_fours = is_narrowed and prod(convolution.x.shape[2:]) % 4 == 0
    of_weight = loads_by_fours * convolution.weight.nbytes + _transformed_weight(convolution)
    return convolution.copies() + of_weight + shared.gradient_of_input(convolution) if is_copied else 0


def _transformed_weight(convolution: Convolution) -> int:
    """Of four taps by four with a stride of two and 256 channels, in single precision: 36 numbers for each 16.

    So in all of 85 problems of 2048 positions and more, within a MiB; of fewer, or of other channels, in none.
    """
    is_transformed = steps_from_256_channels(convolution) and steps_by_two_of_four(convolution)
    return convolution.weight.nbytes * 20 // 16 if is_transformed else 0


def _forward_of_few_channels(convolution: Convolution) -> int:
    is_image = len(convolution.kernel) > 1
    if convolution.is_half and is_image and prod(convolution.kernel) <= SMALL_WINDOW:
        return 0
    if not convolution.is_half and not convolution.is_channels_last and not overlaps_by_half(convolution):
        return 0
    return convolution.copies(padding(convolution), y=not convolution.is_channels_last)


def _gradient_of_few_channels(convolution: Convolution) -> int:
    if convolution.is_half and convolution.overlaps:
        return convolution.copies(8, y=not convolution.is_channels_last)
    return convolution.copies() if convolution.is_channels_last else 0


def _is_grouped_half(convolution: Convolution) -> bool:
    return convolution.is_half and convolution.groups > 1 and not convolution.is_channels_last


def _is_step_in_place(convolution: Convolution) -> bool:
    """Four taps by four with a stride of two, of up to 64 channels: to 128 filters also of 4096 positions and more."""
    if convolution.num_positions <= FEW_POSITIONS:
        return True
    return convolution.filters == 2 * FEW_FILTERS and convolution.num_positions >= MANY_POSITIONS_OF_TAPS // 2


def _writes_in_place(convolution: Convolution) -> bool:
    """Whether `y` needs no copy: in single precision short sums, of few positions unless from 64 channels to 128.

    Of volumes those to 64 channels.
    """
    if convolution.is_half or convolution.groups > 1 or convolution.padded_filters > convolution.filters:
        return False
    if in_place.takes_them(convolution):
        return in_place.writes_in_place(convolution)
    filters, channels = convolution.filters, convolution.channels
    if len(convolution.kernel) == 1:
        is_short = convolution.stride[0] == 1 and convolution.sum_length < SHORT_SUM
        return is_short and convolution.num_positions < MOST_POSITIONS_OF_LINES
    if len(convolution.kernel) == 3:
        return filters == FEW_FILTERS and channels % FEW_CHANNELS == 0
    if FEW_FILTERS < filters <= 2 * FEW_FILTERS and channels == FEW_FILTERS:
        return convolution.sum_length <= LONGER_SUM
    if convolution.is_transposed:
        return False
    if steps_by_two_of_four(convolution):
        return convolution.sum_length <= LONGER_SUM and _is_step_in_place(convolution)
    is_short = convolution.sum_length <= SHORT_SUM and channels <= MOST_SUMMED_CHANNELS
    return is_short and convolution.overlaps and convolution.num_pixels < MOST_POSITIONS


def _steps_over_few(convolution: Convolution) -> bool:
    """Windows with a stride over images in single precision, of few channels, or many of them to three filters.

    Of four taps 32 channels to 64 filters, at 8192 positions and more: eleven problems of eleven.
    """
    is_image = convolution.is_of_images and not convolution.is_transposed
    if not is_image or convolution.is_half or convolution.is_channels_last or min(convolution.stride) == 1:
        return False
    filters, channels = convolution.filters, convolution.channels
    if steps_by_two_of_four(convolution):
        is_narrow = channels == FEW_BOTH and filters == FEW_FILTERS
        return is_narrow and convolution.num_positions >= MANY_POSITIONS_OF_TAPS
    is_small = max(convolution.kernel) <= SMALL_SIDE
    to_few = filters < FEW_CHANNELS and convolution.num_positions >= MOST_POSITIONS // 4
    return is_small and (max(filters, channels) <= FEW_BOTH or to_few)
