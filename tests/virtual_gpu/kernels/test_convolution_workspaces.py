"""The workspaces of convolutions, against an H100 and an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-28)."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, card_of, h100, requested, slugs

pytestmark = pytest.mark.torch


def workspaces(input, weight, layout=torch.contiguous_format, dtype=torch.float16, card=h100, **options):
    """The blocks taken beside the results by the forward and by the backward of one convolution."""
    with card() as gpu:
        x = torch.randn(input, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        w = torch.randn(weight, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        convolve = getattr(F, f"conv{len(weight) - 2}d")
        with births_on(gpu) as forward:
            out = convolve(x, w, **options)
        gradient = torch.ones_like(out)
        with births_on(gpu) as backward:
            out.backward(gradient)
    return tuple([size for size in requested(births) if size not in (t.nbytes for t in (out, x, w))]
                 for births in (forward, backward))  # fmt: skip


def test_tensors_are_copied_to_channels_last():
    """64 channels of 56 x 56, a batch of 16 in half: input, output and weight, and 16 bytes."""
    forward, backward = workspaces((16, 64, 56, 56), (64, 64, 3, 3), padding=1)

    assert forward == [12_918_800]
    assert backward[0] == 12_918_800
    assert 14_836_391 == pytest.approx(backward[1], rel=0.02)


def test_channels_last_need_no_copy():
    """Only the partial sums of the weight's gradient, 1,917,591 bytes, are left."""
    forward, backward = workspaces((16, 64, 56, 56), (64, 64, 3, 3), torch.channels_last, padding=1)

    assert forward == []
    assert [1_917_591] == pytest.approx(backward, rel=0.1)


@pytest.mark.parametrize(
    ("dtype", "copied"),
    [(torch.float32, 15_291_152), (torch.bfloat16, 9_683_984)],
)
def test_channels_are_aligned(dtype, copied):
    """Three channels stay three in single precision and become eight in half."""
    forward, _ = workspaces((16, 3, 112, 112), (64, 3, 7, 7), dtype=dtype, stride=2, padding=3)

    assert forward == [copied]


def test_pointwise():
    """A product of matrices: nothing, but for a partial sum of the weight's gradient for each image."""
    assert workspaces((32, 64, 56, 56), (256, 64, 1, 1)) == ([], [2_097_152])


def test_pointwise_with_odd_rows():
    """7 x 7 positions cannot be loaded by fours: input and output are copied."""
    forward, _ = workspaces((32, 512, 7, 7), (2048, 512, 1, 1))

    assert forward == [8_028_176]


def test_depthwise():
    """PyTorch's own kernels."""
    assert workspaces((16, 96, 28, 28), (96, 1, 7, 7), padding=3, groups=96) == ([], [])


def test_volumes():
    """In three dimensions as in two."""
    forward, _ = workspaces((2, 16, 24, 24, 24), (32, 16, 3, 3, 3), dtype=torch.float32, padding=1)

    assert forward == [5_363_728]


def test_sum_of_the_bias_s_gradient():
    """With channels last the positions are summed in a staging buffer of 6,422,528 bytes."""
    with h100() as gpu:
        layer = torch.nn.Conv2d(64, 64, 3, padding=1).half().cuda().to(memory_format=torch.channels_last)
        out = layer(torch.randn(16, 64, 56, 56, device="cuda").half().to(memory_format=torch.channels_last))
        gradient = torch.ones_like(out)
        with births_on(gpu) as births:
            out.backward(gradient)
    assert 6_422_528 in requested(births)


@pytest.mark.parametrize("switch", ["benchmark", "enabled"])
def test_what_cudnn_tries_out_is_unknown(monkeypatch, switch):
    """With `cudnn.benchmark`, or without cuDNN, no workspace is given."""
    monkeypatch.setattr(torch.backends.cudnn, switch, not getattr(torch.backends.cudnn, switch))

    assert workspaces((16, 64, 56, 56), (64, 64, 3, 3), padding=1) == ([], [])


def test_cards_without_these_kernels():
    """A V100 has no kernels for single precision that want channels last."""
    assert workspaces((16, 64, 56, 56), (64, 64, 3, 3), card=lambda: card_of("v100-16gb"), padding=1) == ([], [])


def test_the_rest_is_listed(virtual_gpu):
    """What cuDNN takes beyond the copies stays unknown."""
    F.conv2d(torch.randn(2, 8, 8, 8, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda"))

    assert "convolution-workspace" in slugs(virtual_gpu)
