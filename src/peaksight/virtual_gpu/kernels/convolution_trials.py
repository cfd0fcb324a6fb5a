"""The first call of a convolution with `cudnn.benchmark`: one workspace, as large as the largest of all plans wants.

`benchmark_exec_plans` of ATen/native/cudnn/Conv_v8.cpp allocates it before it tries the plans of `get_plans_from_find`;
later calls are those of the plan that won. What torch requests is the largest workspace that cuDNN 9.19 tells of all
its plans (an H200, torch 2.11+cu130, 2026-11-30, benchmarks/kernels): of 5,577 results 83% come within a MiB. Among the
plans are nearly always those that go through Fourier space, which take gigabytes for wide layers in single precision.

Limitations:
    Which plans are among them is cuDNN's choice: for `y` of a single tap those in Fourier space are in 435 of 761
    problems. Where no transform is, tiles that are shared out leave up to 17 MiB more beside the copies.
"""

from math import prod

import torch

from peaksight.virtual_gpu.kernels import cudnn_fourier, cudnn_winograd, depthwise_convolutions
from peaksight.virtual_gpu.kernels.convolution_kinds import (
    FEW_CHANNELS,
    steps_from_256_channels,
    widened_copies,
)
from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, Convolution

MOST_PARTIAL_BYTES = 1 << 24
PARTS_OF_WIDENED = 16
MOST_CHANNELS_OF_GROUP = 32
MANY_GROUPS = 32
LARGEST_WIDENED = 5
LARGEST_WIDENED_STEP = 3


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: spectra of pictures, tiles of groups, or copies."""
    if _is_left_to_torch(convolution):
        return 0
    is_whole = prod(convolution.stride) == 1 and cudnn_fourier.fits(convolution)
    has_pictures = is_whole and _has_spectra(convolution) and not _is_narrow_in_half(convolution)
    of_spectra = cudnn_fourier.forward(convolution) if has_pictures else 0
    copies = 0 if _is_not_widened(convolution, LARGEST_WIDENED) else _copies(convolution, is_converted=True)
    return max(of_spectra, _of_tiles(convolution), copies)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes for the gradient of `x`: spectra of tiles, of images whose windows overlap."""
    if _is_left_to_torch(convolution):
        return 0
    is_image = len(convolution.kernel) == 2 and convolution.overlaps and _has_spectra(convolution)
    of_spectra = cudnn_fourier.gradient_of_input(convolution) if is_image and not _has_other_steps(convolution) else 0
    is_left = prod(convolution.stride) > 1 and _is_not_widened(convolution, LARGEST_WIDENED_STEP)
    return max(of_spectra, _of_tiles(convolution), 0 if is_left else _copies(convolution))


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes for the gradient of the weight: spectra, or tiles of pictures too large for them; or partial sums."""
    if _is_left_to_torch(convolution):
        return 0
    of_transform = _transformed_gradient(convolution)
    if _is_widened(convolution):
        return max(of_transform, widened_copies(convolution) + _partial_sums_of_widened(convolution))
    if convolution.groups > 1:
        return max(of_transform, _copies_of_groups(convolution))
    tensors = convolution.x.nbytes + convolution.y.nbytes
    sums = min(MOST_PARTIAL_BYTES, tensors + FLOAT_BYTES * convolution.weight.numel())
    return of_transform or sums + (0 if convolution.is_channels_last else tensors)


def _transformed_gradient(convolution: Convolution) -> int:
    """Of single precision spectra where a tile holds the picture; else Winograd's tiles, of half in groups."""
    is_single = convolution.x.dtype == torch.float32
    is_whole = prod(convolution.stride) == 1 and cudnn_fourier.fits(convolution)
    if is_single and is_whole and _has_spectra(convolution):
        return cudnn_fourier.gradient_of_weight(convolution)
    is_tiled = is_single or convolution.groups > 1
    return cudnn_winograd.gradient_of_weight(convolution) if is_tiled and cudnn_winograd.fits(convolution) else 0


def _is_left_to_torch(convolution: Convolution) -> bool:
    return convolution.is_depthwise and depthwise_convolutions.has_own_kernels(convolution)


def _has_spectra(convolution: Convolution) -> bool:
    """An image or a line without gaps, in single precision or, in narrow groups, in float16."""
    if max(convolution.dilation) > 1 or len(convolution.kernel) > 2:
        return False
    is_of_groups = convolution.groups > 1 and convolution.channels <= MOST_CHANNELS_OF_GROUP
    return convolution.x.dtype == torch.float32 or (is_of_groups and convolution.x.dtype == torch.float16)


def _is_narrow_in_half(convolution: Convolution) -> bool:
    return convolution.is_half and convolution.channels < FEW_CHANNELS and not convolution.is_depthwise


def _has_other_steps(convolution: Convolution) -> bool:
    """Whether a stride is left to other plans: in wide groups, in half in few of them, and of 256 channels."""
    if convolution.groups == 1:
        return steps_from_256_channels(convolution)
    if prod(convolution.stride) == 1:
        return False
    is_of_few = convolution.is_half and convolution.groups < MANY_GROUPS
    return is_of_few or convolution.channels > MOST_CHANNELS_OF_GROUP


def _of_tiles(convolution: Convolution) -> int:
    """Winograd's, of narrow groups in half that lie as pictures do."""
    is_of_groups = convolution.groups > 1 and convolution.is_half and not convolution.is_channels_last
    is_tiled = is_of_groups and FEW_CHANNELS <= convolution.channels < MOST_CHANNELS_OF_GROUP
    return cudnn_winograd.of_result(convolution) if is_tiled and cudnn_winograd.fits(convolution) else 0


def _copies(convolution: Convolution, *, is_converted: bool = False) -> int:
    """Either tensor in another layout; of groups in half in channels last as single precision, too, if converted."""
    if _is_widened(convolution):
        return widened_copies(convolution)
    if convolution.groups == 1:
        return convolution.x.nbytes + convolution.y.nbytes
    is_twice = is_converted and convolution.is_half and convolution.is_channels_last
    return _copies_of_groups(convolution) * (2 if is_twice else 1)


def _copies_of_groups(convolution: Convolution) -> int:
    """All of them, or eight at a time where channels come last."""
    return (convolution.eight_groups() if convolution.is_channels_last else convolution).copies()


def _is_widened(convolution: Convolution) -> bool:
    """Groups of fewer than four channels are widened to four."""
    return convolution.groups > 1 and convolution.channels < FEW_CHANNELS


def _is_not_widened(convolution: Convolution, largest: int) -> bool:
    """Such groups with larger windows, which have other kernels in single precision where channels come last."""
    is_last = convolution.is_channels_last and not convolution.is_half
    return is_last and _is_widened(convolution) and max(convolution.kernel) > largest


def _partial_sums_of_widened(convolution: Convolution) -> int:
    """Of the weight with four channels and as many more filters, in single precision."""
    return PARTS_OF_WIDENED * FLOAT_BYTES * convolution.weight.numel() * (FEW_CHANNELS // convolution.channels) ** 2
