"""The workspaces of single taps with a stride over images, as residual networks take them to fewer positions.

They are products of matrices over some positions of the picture. Kernels for channels last copy the picture and the
output; others read every second position where it lies. Read off 1,080 problems in single precision and bfloat16 on an
H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-30, benchmarks/kernels): 24 to 512 channels, 64 to 512 filters, to 784 to
50,176 positions.

Limitations:
    Which kernel runs is cuDNN's choice; thresholds lie between the sizes that were measured.
"""

from math import prod

from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

FEW_POSITIONS = 1 << 10
SEVERAL_POSITIONS = 7_500
MANY_POSITIONS = 10_000
MANY_POSITIONS_IN_HALF = 1 << 14
VERY_MANY_POSITIONS = 40_000
FEW_SAMPLES = 4
LARGE_SIDE = 28
# Filters and channels between those that were measured.
TO_MANY = 384
TO_SEVERAL = 192
FROM_MANY = 224
FROM_VERY_MANY = 288
NEAR_96 = range(89, 105)
NEAR_80 = range(72, 89)
AROUND_96 = range(80, 113)
WIDE = 104
GRADIENT_WIDE = 176
NARROW_IN_HALF = 56
EVEN_IN_HALF = 64


def takes_them(convolution: Convolution) -> bool:
    """Whether a single tap moves by more than one, over an image whose channels don't come last."""
    is_image = convolution.is_of_images and not convolution.is_transposed and not convolution.is_channels_last
    return is_image and prod(convolution.kernel) == 1 and max(convolution.stride) > 1


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: copies of the picture and of `y`, of the picture and the weight, or none."""
    if convolution.is_half:
        return 0 if _lies_in_half(convolution) else convolution.copies()
    filters, channels = convolution.filters, convolution.channels
    if filters >= TO_MANY and channels >= WIDE and convolution.num_positions >= FEW_POSITIONS:
        is_written = convolution.num_positions >= MANY_POSITIONS and channels < TO_MANY
        return convolution.copies(y=not is_written)
    return convolution.copies() if _is_copied(convolution) else 0


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes for the gradient of `x`: copies from many channels, of fewer positions to many filters alone."""
    if convolution.is_half:
        return convolution.copies()
    is_small = convolution.num_positions < FEW_POSITIONS and convolution.filters < TO_MANY
    return 0 if is_small or convolution.channels < GRADIENT_WIDE else convolution.copies()


def lies_for_weight(convolution: Convolution) -> bool:
    """Whether the gradient of the weight is made in place: in single precision to few filters."""
    num_positions, channels = convolution.num_positions, convolution.channels
    if convolution.is_half or num_positions < FEW_POSITIONS or convolution.filters >= TO_SEVERAL:
        return False
    if channels >= FROM_MANY:
        return num_positions < VERY_MANY_POSITIONS
    if channels > NEAR_80[-1]:
        return num_positions < SEVERAL_POSITIONS
    return convolution.filters in AROUND_96 and convolution.x.shape[0] >= FEW_SAMPLES


def _is_copied(convolution: Convolution) -> bool:
    """Whether the picture and `y` are, in single precision; of few positions those of very many channels."""
    filters, channels = convolution.filters, convolution.channels
    if convolution.num_positions < FEW_POSITIONS:
        return channels >= FROM_VERY_MANY
    if channels in NEAR_80:
        return filters >= TO_SEVERAL
    if channels in NEAR_96:
        return min(convolution.y.shape[2:]) >= LARGE_SIDE
    return channels >= WIDE and filters >= TO_SEVERAL and _loads_by_fours(convolution)


def _loads_by_fours(convolution: Convolution) -> bool:
    """Whether four positions of `y` load at once and are of some pictures, but not of very many positions."""
    is_even = prod(convolution.y.shape[2:]) % 4 == 0
    return is_even and convolution.x.shape[0] >= FEW_SAMPLES and convolution.num_positions < VERY_MANY_POSITIONS


def _lies_in_half(convolution: Convolution) -> bool:
    """Of many positions to few filters, or of few channels; of very few positions channels that aren't even."""
    filters, channels, num_positions = convolution.filters, convolution.channels, convolution.num_positions
    if num_positions < MANY_POSITIONS_IN_HALF:
        return num_positions < FEW_POSITIONS and channels % EVEN_IN_HALF != 0
    if channels < NARROW_IN_HALF:
        return True
    return filters < TO_SEVERAL and (channels < FROM_MANY or filters % EVEN_IN_HALF != 0)
