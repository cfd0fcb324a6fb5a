"""The forward of convolutions over volumes, in S3D and MViT, against an H200 (torch 2.11+cu130, cuDNN 9.19)."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch


def workspaces(input, weight, dtype, **options):
    """What the forward takes beside its result."""
    with h100() as gpu:
        x, w = (torch.empty(shape, device="cuda", dtype=dtype) for shape in (input, weight))
        with births_on(gpu) as births:
            out = F.conv3d(x, w, **options)
    return [size for size in requested(births) if size != out.nbytes]


@pytest.mark.parametrize(
    ("dtype", "samples", "filters", "window", "steps", "measured"),
    [
        (torch.float32, 36, 64, (1, 7, 7), (1, 2, 2), [2_196_542_224]),
        (torch.float16, 12, 64, (1, 7, 7), (1, 2, 2), [366_102_928]),
        (torch.float32, 24, 96, (3, 7, 7), (2, 4, 4), [462_591_376]),
        (torch.float16, 8, 96, (3, 7, 7), (2, 4, 4), [77_155_024]),
        (torch.bfloat16, 8, 64, (3, 7, 7), (1, 2, 2), []),
        (torch.float32, 4, 45, (1, 7, 7), (1, 2, 2), []),
    ],
)
def test_stems(dtype, samples, filters, window, steps, measured):
    """Three channels are copied as they are; in bfloat16, and to 45 filters, nothing is."""
    padding = (window[0] // 2, 3, 3)
    size = (samples, 3, 16, 224, 224) if measured else (samples, 3, 16, 112, 112)

    assert measured == workspaces(size, (filters, 3, *window), dtype, stride=steps, padding=padding)


@pytest.mark.parametrize(
    ("size", "filters", "measured"),
    [
        ((36, 64, 8, 56, 56), 192, [231_653_392]),
        ((36, 96, 4, 14, 14), 208, [11_556_880]),
        ((36, 112, 4, 14, 14), 224, [13_547_536]),
        ((36, 96, 8, 28, 28), 128, [202_752_147]),
        ((36, 32, 8, 28, 28), 96, []),
        ((36, 24, 4, 14, 14), 64, []),
        ((36, 32, 4, 14, 14), 128, [18_210_832]),
    ],
)
def test_windows_of_pictures(size, filters, measured):
    """Whole tiles of filters are copied out, others written in place; of few channels nothing is copied."""
    predicted = workspaces(size, (filters, size[1], 1, 3, 3), torch.float32, padding=(0, 1, 1))

    assert measured == pytest.approx(predicted, abs=131)


@pytest.mark.parametrize(
    ("size", "filters", "window", "step", "measured"),
    [
        ((36, 64, 16, 112, 112), 64, 7, 2, [2_774_646_931]),
        ((36, 64, 4, 14, 14), 64, 3, 1, [14_499_987]),
        ((36, 96, 8, 28, 28), 96, 3, 1, []),
        ((36, 48, 4, 14, 14), 48, 3, 1, []),
        ((36, 208, 4, 14, 14), 208, 3, 1, [47_484_051]),
        ((36, 128, 4, 14, 14), 128, 3, 1, [29_098_131]),
    ],
)
def test_windows_of_time(size, filters, window, step, measured):
    """To less than a tile of filters nothing is copied, but to half of one."""
    shape, padding = (filters, size[1], window, 1, 1), (window // 2, 0, 0)
    predicted = workspaces(size, shape, torch.float32, stride=(step, 1, 1), padding=padding)

    assert measured == pytest.approx(predicted, abs=131)


def test_volumes_that_end_in_one_channel():
    """Four channels of costs are copied for each disparity of stereo pictures (2026-11-30)."""
    (taken,) = workspaces((1, 32, 48, 128, 192), (1, 32, 3, 3, 3), torch.float32, padding=1)
    assert 169_883_283 == pytest.approx(taken, abs=512)
