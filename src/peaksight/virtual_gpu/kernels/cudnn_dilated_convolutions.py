"""The workspaces of cuDNN's kernels for dilated convolutions in single precision, as of segmentation networks.

They read tensors in a layout of their own and write rows or channels last: what is read is copied, and results but for
the gradient of the input from rows. Read off single calls on an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-28,
benchmarks/operators): 2,048 channels to 256 and 32 to 32, in both layouts.

Limitations:
    How often the sum of the weight's gradient is split is read off those two.
"""

import torch

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, SHORT_SUM, Convolution

NUM_PARTS_OF_LONG_SUM = 18
NUM_PARTS_OF_SHORT_SUM = 12
COUNTERS_BYTES = 128


def takes_them(convolution: Convolution) -> bool:
    """Long sums of channels and windows in single precision; in half the kernels are those without dilation."""
    return _is_dilated(convolution) and _is_long(convolution)


def splits_the_sum(convolution: Convolution) -> bool:
    """Whether theirs is the gradient of the weight: that of short sums is only if channels come last."""
    return _is_dilated(convolution) and (convolution.is_channels_last or _is_long(convolution))


def _is_dilated(convolution: Convolution) -> bool:
    """Whether the window has gaps, in single precision and in an image."""
    is_image = len(convolution.kernel) == 2 and convolution.groups == 1 and not convolution.is_transposed
    return is_image and max(convolution.dilation) > 1 and convolution.x.dtype == torch.float32


def forward(convolution: Convolution) -> int:
    """The input and the weight, and the result if its channels come last."""
    return convolution.copies(y=convolution.is_channels_last)


def gradient_of_input(convolution: Convolution) -> int:
    """The gradient of the output and the weight, and the result unless its channels come last."""
    return convolution.copies(x=not convolution.is_channels_last)


def gradient_of_weight(convolution: Convolution) -> int:
    """The input and the gradient of the output, and partial sums; the result too unless its channels come last."""
    weight_bytes = convolution.weight.nbytes
    parts = NUM_PARTS_OF_LONG_SUM if _is_long(convolution) else NUM_PARTS_OF_SHORT_SUM
    copied = convolution.x.nbytes + convolution.y.nbytes + DESCRIPTOR_BYTES
    result = 0 if convolution.is_channels_last else weight_bytes
    return copied + result + parts * weight_bytes + COUNTERS_BYTES


def _is_long(convolution: Convolution) -> bool:
    return convolution.sum_length > SHORT_SUM
