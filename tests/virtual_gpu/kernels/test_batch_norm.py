"""What batch normalisation takes: the events of an H200, torch 2.11+cu130, cuDNN 9.19, 2026-11-28."""

import pytest
import torch
from torch import nn

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch

NHWC = torch.channels_last
IMAGES = (32, 64, 56, 56)
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32


def events_of(shape, dtype, weights=FLOAT, layout=torch.contiguous_format, training=True):
    """Forward and backward of a BatchNorm on a leaf of `shape` on an H200."""
    kind = {2: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    with card_of("h200") as gpu:
        layer = kind(shape[1]).to("cuda", weights).train(training)
        x = torch.randn(*shape, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        with events_on(gpu) as forward:
            y = layer(x)
        gradient = torch.ones_like(y)
        with events_on(gpu) as backward:
            y.backward(gradient)
    return forward, backward


@pytest.mark.parametrize(
    ("shape", "dtype", "forward_bytes", "backward_bytes"),
    [
        (IMAGES, FLOAT, 810_164, 536_612),
        (IMAGES, HALF, 325_124, 536_612),
        ((2, 2048, 7, 7), FLOAT, 34_224, 33_952),
        ((2, 2048, 7, 7), HALF, 17_712, 33_952),
        ((1, 64, 4, 4), FLOAT, 1592, 1572),
        ((8, 256, 112, 112), HALF, 1_297_280, 2_143_280),
    ],
)
def test_workspace_of_cudnn(shape, dtype, forward_bytes, backward_bytes):
    """Channels-last in training: partial results of tiles of 64 channels."""
    forward, backward = events_of(shape, dtype, layout=NHWC)

    assert [forward_bytes, -forward_bytes] == forward[-2:]
    assert backward_bytes in backward


def test_contiguous_in_training():
    """cuDNN takes no workspace for it."""
    forward, backward = events_of(IMAGES, FLOAT)

    assert [25_690_112, 256, 256] == forward
    assert [25_690_112, 256, 256, -256, -256] == backward


def test_cudnn_in_evaluation_saves_nothing():
    """The backward reads the running statistics."""
    forward, backward = events_of(IMAGES, FLOAT, training=False)

    assert [25_690_112] == forward
    assert [25_690_112, 256, 256] == backward


def test_channels_last_in_evaluation():
    """The backward is PyTorch's; its result is contiguous, so that the gradient is a copy of it."""
    forward, backward = events_of(IMAGES, FLOAT, layout=NHWC, training=False)
    measured = [256, 256, 256, 256, 256, 65_536, 8, -8, -65_536, 25_690_112, -256, -256, -256, 25_690_112, -25_690_112]

    assert [25_690_112] == forward
    assert sorted(measured) == sorted(backward)


@pytest.mark.parametrize(("dtype", "weights"), [(BF16, FLOAT), (BF16, BF16), (HALF, HALF)])
def test_native_channels_last(dtype, weights):
    """PyTorch's kernels for bfloat16 and for weights in half precision: statistics of blocks of rows."""
    forward, backward = events_of(IMAGES, dtype, weights, NHWC)
    gradient = 64 * weights.itemsize
    measured = [256, 256, gradient, gradient, 65_536, 8, -8, -65_536, 12_845_056, -256, -256, -256, -256]

    assert [12_845_056, 256, 256, 131_072, 8, -8, -131_072] == forward
    assert sorted(measured) == sorted(backward)


@pytest.mark.parametrize(
    ("channels", "buffer", "semaphores"), [(45, 6_082_560, 8), (64, 138_412_032, 4), (144, 311_427_072, 8)]
)
def test_native_channels_last_volumes(channels, buffer, semaphores):
    """Mean and variance are those of a copy in single precision, by the general reduction: layers of R(2+1)D."""
    forward, _ = events_of((16, channels, 16, 56, 56), BF16, layout=torch.channels_last_3d)
    size, statistic = 16 * channels * 16 * 56 * 56 * 2, 4 * channels
    temporaries = [2 * size, buffer, semaphores, -semaphores, -buffer, -2 * size]

    assert [size, statistic, statistic, *temporaries] == forward


def test_vectors():
    """Rows of channels are channels-last; so few of them need one block."""
    forward, backward = events_of((512, 256), FLOAT)

    assert [524_288, 1024, 1024] == forward
    assert sorted([1024, 1024, 1024, 1024, 524_288, -1024, -1024, -1024, -1024]) == sorted(backward)
