"""What normalisations take: the events of an H200, torch 2.11+cu130, 2026-11-28."""

import pytest
import torch
from torch import nn

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch


def events_of(layer, *shape, dtype=torch.float32, **layout):
    """Forward and backward of `layer` on a leaf of `shape` on an H200."""
    with card_of("h200") as gpu:
        layer = layer.to("cuda", dtype)
        x = torch.randn(*shape, device="cuda", dtype=dtype).to(**layout).requires_grad_()
        with events_on(gpu) as forward:
            y = layer(x)
        gradient = torch.ones_like(y)
        with events_on(gpu) as backward:
            y.backward(gradient)
    return forward, backward


def test_gradient_of_layer_norm_over_many_rows():
    """Partial sums of weight and bias, then a reduction of each."""
    partial, split = 1_200_000, [384, 614_400, 8, -8, -614_400, -384]
    _, backward = events_of(nn.LayerNorm(96), 100_000, 96)

    assert [38_400_000, 384, 384, partial, partial, *split, *split, -partial, -partial, -400_000, -400_000] == backward


def test_gradient_of_rms_norm_over_many_rows():
    """Partial sums of the weight alone, in its type."""
    _, backward = events_of(nn.RMSNorm(512), 70_000, 512, dtype=torch.bfloat16)

    assert [
        71_680_000, 1024, 2_097_152, 1024, 8_388_608, 16, -16, -8_388_608, -1024, -2_097_152, -280_000
    ] == backward  # fmt: skip


@pytest.mark.parametrize(("rows", "width"), [(8192, 768), (512, 12_288)])
def test_gradient_of_layer_norm_over_few_rows(rows, width):
    """One kernel sums it all."""
    _, backward = events_of(nn.LayerNorm(width), rows, width)

    assert [4 * rows * width, 4 * width, 4 * width, -4 * rows, -4 * rows] == backward


def test_group_norm():
    """Coefficients for each channel of each sample, in single precision also for half."""
    forward, backward = events_of(nn.GroupNorm(32, 128), 16, 128, 32, 32, dtype=torch.float16)

    assert [4_194_304, 1024, 1024, 8192, 8192, -8192, -8192] == forward
    assert [
        4_194_304, 256, 256, 8192, 8192, 2048, 2048, 8192, -2048, -2048, -8192, -8192, -8192, -1024, -1024
    ] == backward  # fmt: skip


def test_group_norm_without_affine():
    """No coefficients forward, one fewer backward."""
    forward, backward = events_of(nn.GroupNorm(8, 64, affine=False), 4, 64, 4096)

    assert [4_194_304, 128, 128] == forward
    assert [4_194_304, 1024, 1024, 128, 128, -128, -128, -1024, -1024, -128, -128] == backward


def test_group_norm_of_vectors():
    """One element a channel needs no coefficients."""
    forward, backward = events_of(nn.GroupNorm(16, 256), 64, 256)

    assert [65_536, 4096, 4096] == forward
    assert [65_536, 1024, 1024, 65_536, 65_536, 4096, 4096, -4096, -4096, -65_536, -65_536, -4096, -4096] == backward


def test_group_norm_of_channels_last():
    """The input is copied forward, and the gradient of the input backward (torch 2.11)."""
    image = 8_388_608
    forward, backward = events_of(nn.GroupNorm(32, 128), 16, 128, 32, 32, memory_format=torch.channels_last)

    assert [image, image, 2048, 2048, 8192, 8192, -8192, -8192] == forward
    assert [image, 512, 512, 8192, 8192, 2048, 2048, 8192] == backward[:8]
    assert [-8192, -image, -2048, -2048, image, -image] == backward[-6:]
