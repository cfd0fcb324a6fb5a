"""Which tiles of convolutions are shared out, against an H200 (torch 2.11+cu130, cuDNN 9.19, benchmarks/kernels)."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("shape", "filters", "stride", "forward"),
    [
        # Long sums: square tiles, wide ones to 256 filters, high ones to many.
        ((2, 256, 160, 160), 128, 1, 87_688_192),
        ((6, 384, 64, 64), 192, 1, 67_142_387),
        ((6, 256, 64, 64), 256, 1, 60_556_019),
        ((16, 256, 64, 64), 256, 2, 93_586_035),
        ((16, 640, 32, 32), 640, 1, 106_497_024),
        ((8, 640, 16, 16), 1280, 1, 53_085_184),
        ((16, 640, 16, 16), 1280, 1, 75_629_056),
        ((16, 1280, 16, 16), 1280, 1, 115_606_016),
        ((64, 256, 14, 14), 256, 1, 36_438_528),
        ((16, 512, 128, 128), 512, 1, 1_098_384_384),
        # With a stride.
        ((2, 256, 128, 128), 256, 2, 52_167_680),
        ((32, 512, 14, 14), 512, 2, 32_834_048),
        ((16, 256, 32, 32), 512, 2, 37_749_391),
        ((32, 1024, 14, 14), 1024, 2, 84_541_952),
        # Shorter sums.
        ((2, 128, 128, 128), 128, 1, 38_339_072),
        ((6, 128, 128, 128), 128, 1, 107_544_947),
        ((16, 128, 128, 128), 128, 2, 174_654_464),
        ((6, 192, 64, 64), 192, 1, 46_940_915),
        ((4, 128, 46, 62), 256, 1, 26_567_071),
        ((16, 128, 64, 64), 512, 2, 75_760_179),
    ],
)
def test_last_tiles_are_shared_out(shape, filters, stride, forward):
    """In single precision a last wave of few tiles leaves a sum for each part of them, one of many tiles none."""
    assert ahead(shape, filters, stride) == pytest.approx(forward, abs=1024)


@pytest.mark.parametrize(
    ("shape", "filters", "stride", "forward"),
    [
        ((1, 128, 256, 256), 128, 1, 67_699_200),
        ((64, 128, 28, 28), 128, 1, 51_970_560),
        ((128, 160, 32, 32), 160, 1, 168_694_272),
        ((32, 256, 40, 40), 256, 1, 107_217_408),
        ((2, 256, 128, 128), 256, 1, 69_468_672),
        ((8, 160, 80, 80), 96, 1, 52_982_272),
        ((16, 512, 7, 7), 512, 1, 12_648_960),
        ((4, 512, 20, 20), 1024, 1, 28_705_280),
    ],
)
def test_other_tiles_are_not_shared(shape, filters, stride, forward):
    """Those of few positions, and of others whose sums are shorter or whose filters no tile fits."""
    assert ahead(shape, filters, stride) == pytest.approx(forward, abs=1024)


def ahead(shape, filters, stride):
    """Bytes of the forward's workspace."""
    with h100() as gpu:
        x, w = (torch.empty(sides, device="cuda") for sides in (shape, (filters, shape[1], 3, 3)))
        with births_on(gpu) as births:
            out = F.conv2d(x, w, stride=stride, padding=1)
    (forward,) = (size for size in requested(births) if size != out.nbytes)
    return forward
