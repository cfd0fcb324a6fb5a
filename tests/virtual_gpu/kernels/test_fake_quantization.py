"""Quantisation-aware training, as ATen/native/quantized has it."""

import pytest
import torch
from torch import nn
from torch.ao import quantization

from ..cards import births_on, events_on, requested

pytestmark = pytest.mark.torch

SIZE = 64 * 64


@pytest.fixture
def numbers():
    """Four bytes each, of which a gradient is asked."""
    return torch.empty(64, 64, device="cuda", requires_grad=True)


def test_a_tensor_keeps_a_mask_for_its_backward(virtual_gpu, numbers):
    """A byte for each number; the gradient is a product with it."""
    with events_on(virtual_gpu) as events:
        out = torch.fake_quantize_per_tensor_affine(numbers, 0.1, 0, -128, 127)
    gradient = torch.empty_like(out)
    with events_on(virtual_gpu) as of_backward:
        out.backward(gradient)

    assert [4 * SIZE, SIZE] == events
    assert 4 * SIZE == of_backward[0]


def test_zeros_of_channels_are_looked_at(virtual_gpu, numbers):
    """The smallest and the largest are compared with the range on the host."""
    scale, zeros = torch.ones(64, device="cuda"), torch.zeros(64, dtype=torch.int32, device="cuda")
    with births_on(virtual_gpu) as births:
        torch.fake_quantize_per_channel_affine(numbers, scale, zeros, 0, -128, 127)

    assert [4, 4, 4 * SIZE, SIZE] == requested(births)


@pytest.mark.parametrize(
    "quantizer",
    [
        quantization.FakeQuantize,
        quantization.FusedMovingAvgObsFakeQuantize,
        quantization.default_per_channel_weight_fake_quant,
        quantization.default_fused_per_channel_wt_fake_quant,
    ],
)
def test_what_observes_and_rounds(virtual_gpu, numbers, quantizer):
    """Forward and backward keep the shape; the observers of channels grow to their number at the first call."""
    layer = quantizer().cuda()
    out = layer(numbers)
    out.sum().backward()

    assert (64, 64) == tuple(out.shape) == tuple(numbers.grad.shape)
    assert len(layer.scale) == (1 if layer.ch_axis < 0 else 64)


@pytest.mark.parametrize("channels", [1, 64])
def test_learnable_scales_have_a_share_for_each_number(virtual_gpu, numbers, channels):
    """Three tensors as large as the input, of which one stays."""
    scale = nn.Parameter(torch.ones(channels, device="cuda"))
    zeros = nn.Parameter(torch.zeros(channels, device="cuda"))
    arguments = (numbers, scale, zeros, *([0] if channels > 1 else []), -128, 127, 1.0)
    op = "channel" if channels > 1 else "tensor"
    out = getattr(torch, f"_fake_quantize_learnable_per_{op}_affine")(*arguments)
    with births_on(virtual_gpu) as births:
        out.backward(torch.empty_like(out))
    of_all = [size for size in requested(births) if size == 4 * SIZE]

    assert 4 == len(of_all)  # with the gradient that came in
    assert scale.grad.shape == zeros.grad.shape == (channels,)


def test_a_prepared_network_trains(virtual_gpu):
    """Convolution and batch norm folded, as `prepare_qat` leaves them."""
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).train()
    network.qconfig = quantization.get_default_qat_qconfig("x86")
    fused = quantization.fuse_modules_qat(network, ["0", "1", "2"])
    prepared = quantization.prepare_qat(fused).cuda()
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.1)
    prepared(torch.empty(2, 3, 16, 16, device="cuda")).sum().backward()
    optimizer.step()

    assert all(parameter.grad is not None for parameter in prepared.parameters())
