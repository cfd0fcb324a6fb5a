"""Workspaces of patches, against an H200 (torch 2.11+cu130, cuDNN 9.19, benchmarks/kernels)."""

import pytest
import torch

from peaksight.virtual_gpu.kernels import cudnn_convolutions, cudnn_weight_gradients
from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

pytestmark = pytest.mark.torch
HALF, SINGLE = torch.bfloat16, torch.float32
MULTIPROCESSORS = 132


def patches(num_pictures, side, patch, filters, dtype, *, last=False):
    """Pictures of three channels that are cut into patches."""
    sizes = (
        (num_pictures, 3, side, side),
        (num_pictures, filters, side // patch, side // patch),
        (filters, 3, patch, patch),
    )
    x, y, weight = (torch.empty(size, dtype=dtype, device="meta") for size in sizes)
    return Convolution(x, y, weight, (patch, patch), (1, 1), 1, False, last)


@pytest.mark.parametrize(
    ("problem", "forward", "of_weight"),
    [
        (patches(64, 224, 16, 768, HALF), 73_793_552, 92_668_048),
        (patches(64, 224, 16, 768, HALF, last=True), 54_525_968, 73_400_464),
        (patches(128, 384, 16, 768, HALF), 0, 424_673_839),
        (patches(64, 224, 16, 384, torch.float16), 0, 72_024_208),
        (patches(128, 224, 32, 768, HALF), 124_977_168, 9_455_632),
        (patches(64, 224, 16, 768, SINGLE), 93_061_136, 93_061_264),
        (patches(32, 224, 16, 768, SINGLE), 0, 48_103_568),
        (patches(256, 224, 16, 768, SINGLE), 208_666_640, 362_807_632),
    ],
)
def test_pictures_in_patches(problem, forward, of_weight):
    """Padded copies, where there are any; parts of the sum for the gradient of the weight."""
    assert forward == cudnn_convolutions.forward(problem)
    assert of_weight == pytest.approx(cudnn_weight_gradients.gradient_of_weight(problem, MULTIPROCESSORS), abs=32 << 10)


def test_clips_in_half_need_nothing():
    """As VideoMAE cuts them up."""
    sizes = (8, 3, 16, 224, 224), (8, 768, 8, 14, 14), (768, 3, 2, 16, 16)
    x, y, weight = (torch.empty(size, dtype=HALF, device="meta") for size in sizes)
    assert 0 == cudnn_convolutions.forward(Convolution(x, y, weight, (2, 16, 16), (1, 1, 1), 1, False, False))
