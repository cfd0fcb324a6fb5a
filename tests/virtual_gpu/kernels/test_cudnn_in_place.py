"""Which windows over 64 channels are written in place, against an H200 (torch 2.11+cu130, cuDNN 9.19)."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("shape", "filters", "stride", "is_in_place"),
    [
        ((96, 64, 7, 7), 64, 1, True),
        ((128, 64, 7, 7), 64, 1, False),
        ((512, 64, 9, 9), 64, 1, True),
        ((24, 64, 14, 14), 64, 1, True),
        ((32, 64, 14, 14), 64, 1, False),
        ((16, 64, 28, 28), 64, 1, True),
        ((24, 64, 28, 28), 64, 2, False),
        ((32, 64, 56, 56), 64, 1, True),
        ((48, 64, 56, 56), 64, 1, False),
        ((8, 64, 112, 112), 64, 1, False),
        ((8, 64, 112, 112), 64, 2, True),
        ((2, 64, 128, 128), 64, 1, True),
        ((4, 64, 128, 128), 64, 1, False),
        ((16, 64, 32, 32), 128, 1, False),
        ((32, 64, 14, 14), 128, 2, False),
        ((2, 64, 128, 128), 128, 1, True),
    ],
)
def test_in_place(shape, filters, stride, is_in_place):
    """Copies are of `x` and the weight, and of `y` from a batch on that each size of images has its own."""
    with h100() as gpu:
        x, weight = (torch.empty(sides, device="cuda") for sides in (shape, (filters, 64, 3, 3)))
        with births_on(gpu) as births:
            out = F.conv2d(x, weight, stride=stride, padding=1)
    workspace = sum(requested(births)) - out.nbytes

    assert workspace == 4 * (math.prod(shape) + filters * 576) + (not is_in_place) * out.nbytes + 16
