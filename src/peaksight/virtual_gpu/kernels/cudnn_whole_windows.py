"""Convolutions in single precision by windows as large as the picture, as of second derivatives.

`_convolution_double_backward` (ATen/native/Convolution.cpp) makes samples to channels: the gradient of a weight is then
a convolution of a few positions by pictures, in groups one after the other. Many pictures go through Fourier space, and
the workspace holds the spectra of all that are made, twice. Read off 417 problems on an H200 (torch 2.11+cu130, cuDNN
9.19, 2026-11-29, benchmarks/kernels/drawn_layers.py); the spectra are there to the byte.

Limitations:
    Which of them go through Fourier space is cuDNN's choice: of two or four channels to several positions some do.
"""

from peaksight.virtual_gpu.kernels import cudnn_fourier
from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

MOST_CHANNELS = 4
FEWEST_PICTURES = 32
FEWEST_PICTURES_TO_SEVERAL = 64
SMALLEST_SIDE = 16
LARGE_SIDE = 64


def takes_them(convolution: Convolution) -> bool:
    """Whether there is a window for nearly the whole picture, of few channels."""
    if not convolution.is_of_images or convolution.is_half or convolution.is_transposed:
        return False
    sides = zip(convolution.x.shape[2:], convolution.kernel, convolution.dilation, strict=True)
    is_whole = all(step * size >= side - 2 and side >= SMALLEST_SIDE for side, size, step in sides)
    return is_whole and (convolution.channels < MOST_CHANNELS or _has_spectra(convolution))


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: the spectra of all that is made, or of a single picture's what it is made of."""
    return cudnn_fourier.forward(convolution) if _has_spectra(convolution) else 0


def _has_spectra(convolution: Convolution) -> bool:
    """Of many pictures to one position, or large ones of one channel to several."""
    samples, channels = convolution.x.shape[:2]
    if max(convolution.dilation) > 1 or channels > MOST_CHANNELS or samples < FEWEST_PICTURES:
        return False
    is_single = max(convolution.y.shape[2:]) == 1
    is_large = min(convolution.x.shape[2:]) >= LARGE_SIDE and samples >= FEWEST_PICTURES_TO_SEVERAL
    return is_single or (channels == 1 and is_large)
