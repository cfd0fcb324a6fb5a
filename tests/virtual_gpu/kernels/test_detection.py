"""torchvision's kernels, against an H200 (torch 2.11+cu130, torchvision 0.26, 2026-11-28)."""

import pytest
import torch

from tests.virtual_gpu.cards import births_on, requested

pytestmark = [pytest.mark.torch, pytest.mark.models]


@pytest.mark.parametrize(
    ("count", "taken"), [(1000, [8000, 16_000, 128_000, 1000]), (5000, [40_000, 80_000, 3_160_000, 5000])]
)
def test_nms(virtual_gpu, count, taken):
    """A bit for each pair of boxes."""
    ops = pytest.importorskip("torchvision.ops")
    boxes, scores = torch.rand(count, 4, device="cuda"), torch.rand(count, device="cuda")

    with births_on(virtual_gpu) as births:
        ops.nms(boxes, scores, 0.5)

    assert set(taken) <= set(requested(births))


def test_deformable_convolution(virtual_gpu):
    """The unfolded input decides: 46,080,000 bytes in the forward, and in the backward for either gradient."""
    ops = pytest.importorskip("torchvision.ops")
    image = torch.randn(2, 64, 100, 100, device="cuda", requires_grad=True)
    offset, weight = torch.randn(2, 18, 100, 100, device="cuda"), torch.randn(32, 64, 3, 3, device="cuda")

    with births_on(virtual_gpu) as births:
        ops.deform_conv2d(image, offset, weight, padding=1).sum().backward()

    assert requested(births).count(46_080_000) == 3
