"""Which tiles of gradients of the input are shared out, against an H200 (torch 2.11+cu130, cuDNN 9.19)."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("shape", "filters", "measured"),
    [
        ((2, 64, 96, 96), 256, 27_624_448),
        ((2, 96, 128, 128), 96, 29_692_416),
        ((32, 112, 14, 14), 224, 16_148_992),
        ((256, 128, 7, 7), 128, 27_066_751),
        ((256, 128, 14, 14), 128, 58_262_067),
        ((16, 128, 28, 28), 256, 34_079_103),
        ((48, 128, 28, 28), 256, 73_662_975),
        ((8, 256, 32, 32), 256, 35_914_240),
        ((32, 256, 40, 40), 256, 116_654_592),
        ((2, 320, 28, 28), 384, 15_131_136),
        ((6, 384, 32, 32), 384, 32_047_855),
        ((6, 384, 64, 64), 384, 93_389_171),
        ((8, 640, 16, 16), 1280, 60_949_504),
        ((16, 1280, 16, 16), 1280, 115_606_016),
    ],
)
def test_last_tiles_are_shared_out(shape, filters, measured):
    """Each of few last tiles leaves a sum for every part: to the byte beside copies of all three tensors."""
    assert measured == pytest.approx(of_input(shape, filters), abs=1024)


@pytest.mark.parametrize(
    ("shape", "filters", "measured"),
    [((16, 128, 28, 28), 128, 13_434_896), ((6, 384, 64, 64), 192, 59_277_459), ((8, 1280, 32, 32), 640, 92_406_272)],
)
def test_other_tiles_are_not_shared(shape, filters, measured):
    """As where they just fill the card, or others run."""
    assert measured == pytest.approx(of_input(shape, filters), abs=1024)


def of_input(shape, filters):
    """Bytes of the workspace."""
    with h100() as gpu:
        x, weight = (torch.empty(sides, device="cuda") for sides in (shape, (filters, shape[1], 3, 3)))
        gradient = F.conv2d(x, weight, padding=1)
        with births_on(gpu) as births:
            torch.ops.aten.convolution_backward(
                gradient, x, weight, [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, False, False]
            )
    (num_bytes,) = (size for size in requested(births) if size != x.nbytes)
    return num_bytes
