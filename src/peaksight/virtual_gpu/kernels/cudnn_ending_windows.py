"""The workspaces of windows as large as a small picture, as networks end that are convolutions throughout.

They make a single position of each picture: a product of matrices, of few rows and long sums. Where kernels want other
layouts, the picture and the weight are copied, the output never. Of wide layers in single precision both gradients are
made in place, that of the weight with a counter for 128 of its numbers. Read off 2,124 problems on an H200 (torch
2.11+cu130, cuDNN 9.19, 2026-11-30, benchmarks/kernels): pictures of 4 x 4 to 14 x 14, 16 to 512 channels, 10 to 4,096
filters, 1 to 128 pictures.

Limitations:
    Which kernel runs changes with the batch; where it does from one batch to the next, that of most is taken.
"""

from peaksight.virtual_gpu.kernels import cudnn_fourier
from peaksight.virtual_gpu.kernels.convolution_problem import FLOAT_BYTES, Convolution

SIDES = range(4, 15)
FEWEST_CHANNELS = 16
NARROW = 64
WIDE = 256
VERY_WIDE = 512
FEW_FILTERS = 32
MANY_FILTERS = 1024
VERY_MANY_FILTERS = 4096
FEW_SAMPLES = 8
SEVERAL_SAMPLES = 16
MANY_SAMPLES = 64
VERY_MANY_SAMPLES = 128
BYTES_OF_COUNTER = 512
# Pictures that go through Fourier space, to 64 filters, by their side.
SAMPLES_OF_SPECTRA = {6: range(1, 16), 7: range(1, 64), 14: range(2, 16)}
# Of the sum for a weight's gradient in half, to 128 filters.
PARTS_IN_HALF = 8
SIDES_OF_PARTS = (6, 7)


def takes_them(convolution: Convolution) -> bool:
    """Whether each picture, of many channels, is one window."""
    if not convolution.is_of_images or convolution.is_transposed or convolution.is_channels_last:
        return False
    is_whole = convolution.kernel == convolution.x.shape[2:] and max(convolution.y.shape[2:]) == 1
    is_small = all(side in SIDES for side in convolution.kernel)
    return is_whole and is_small and convolution.channels >= FEWEST_CHANNELS


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: copies of pictures and the weight, or spectra, or none in half of wide layers."""
    if _has_spectra(convolution):
        return cudnn_fourier.forward(convolution)
    return 0 if _is_large_in_half(convolution) else convolution.copies(y=False)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes for the gradient of `x`: copies, none from wide layers to fewer than 512 filters; all of them in half."""
    if convolution.is_half:
        return convolution.copies()
    is_in_place = convolution.channels >= WIDE and convolution.filters < VERY_WIDE
    return 0 if is_in_place else convolution.copies(y=False)


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes for the gradient of the weight."""
    return _gradient_in_half(convolution) if convolution.is_half else _gradient_in_single(convolution)


def _has_spectra(convolution: Convolution) -> bool:
    samples, side = convolution.x.shape[0], convolution.x.shape[-1]
    is_to_few = FEW_FILTERS <= convolution.filters <= NARROW and not convolution.is_half
    return is_to_few and samples in SAMPLES_OF_SPECTRA.get(side, ())


def _is_large_in_half(convolution: Convolution) -> bool:
    """Of a wide layer to many filters, of sixteen pictures or more, unless both are very many."""
    samples, filters = convolution.x.shape[0], convolution.filters
    is_very_large = samples >= VERY_MANY_SAMPLES and filters >= VERY_MANY_FILTERS
    is_wide = convolution.channels >= WIDE and filters >= MANY_FILTERS and convolution.kernel[0] > SIDES[0]
    return convolution.is_half and is_wide and samples >= SEVERAL_SAMPLES and not is_very_large


def _gradient_in_single(convolution: Convolution) -> int:
    """Copies from narrow layers or of many pictures to very many filters; else none."""
    samples, channels, filters = convolution.x.shape[0], convolution.channels, convolution.filters
    if filters < FEW_FILTERS:
        return convolution.copies() if channels >= VERY_WIDE and samples >= SEVERAL_SAMPLES else 0
    if filters <= NARROW:
        return _gradient_to_few(convolution)
    if channels < WIDE:
        return convolution.copies(y=False)
    if samples >= MANY_SAMPLES and filters >= VERY_WIDE:
        return convolution.copies()
    return convolution.weight.nbytes // BYTES_OF_COUNTER


def _gradient_to_few(convolution: Convolution) -> int:
    """Of 64 filters or fewer: of single pictures and of very many copies and parts of the sum."""
    samples = convolution.x.shape[0]
    if convolution.kernel[0] == SIDES[0]:
        return convolution.copies(y=False)
    if convolution.channels < NARROW or FEW_SAMPLES <= samples < MANY_SAMPLES:
        return 0
    parts = 1 if samples < FEW_SAMPLES else 6 if samples < VERY_MANY_SAMPLES else 2
    return convolution.copies() + parts * convolution.weight.nbytes


def _gradient_in_half(convolution: Convolution) -> int:
    """The gradient in single precision for wide layers, parts of it for 128 filters; else copies."""
    channels, filters, side = convolution.channels, convolution.filters, convolution.kernel[0]
    in_single = FLOAT_BYTES * convolution.weight.numel()
    if side in SIDES_OF_PARTS and channels >= WIDE:
        if NARROW < filters < WIDE:
            return convolution.copies() + PARTS_IN_HALF * in_single
        return in_single if filters == WIDE else convolution.copies()
    is_in_single = channels >= VERY_WIDE and filters > NARROW and side >= 8
    return in_single if is_in_single else convolution.copies()
