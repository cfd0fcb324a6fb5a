"""Workspaces of groups in half, against an H200 (torch 2.11+cu130, cuDNN 9.19, benchmarks/kernels)."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch
LAST = torch.channels_last


def ahead(shape, channels, stride=1, layout=torch.contiguous_format):
    """Bytes of the forward's workspace."""
    with h100() as gpu:
        x, weight, groups = tensors(shape, channels, layout)
        with births_on(gpu) as births:
            out = F.conv2d(x, weight, stride=stride, padding=1, groups=groups)
    return sum(size for size in requested(births) if size != out.nbytes)


def of_input(shape, channels, stride=1, layout=torch.contiguous_format):
    """Bytes of the workspace of the gradient of the input."""
    return backward(shape, channels, stride, layout, [True, False, False])


def of_weight(shape, channels, stride=1, layout=torch.contiguous_format):
    """Bytes of the workspace of the gradient of the weight."""
    return backward(shape, channels, stride, layout, [False, True, False])


def backward(shape, channels, stride, layout, output_mask):
    with h100() as gpu:
        x, weight, groups = tensors(shape, channels, layout)
        gradient = F.conv2d(x, weight, stride=stride, padding=1, groups=groups)
        with births_on(gpu) as births:
            torch.ops.aten.convolution_backward(
                gradient, x, weight, [0], [stride] * 2, [1, 1], [1, 1], False, [0, 0], groups, output_mask
            )
    return sum(size for size in requested(births) if size != (x if output_mask[0] else weight).nbytes)


def tensors(shape, channels, layout):
    """An input, a weight of as many filters, and the number of groups."""
    sizes = shape, (shape[1], channels, 3, 3)
    x, weight = (torch.empty(size, device="cuda", dtype=torch.half).to(memory_format=layout) for size in sizes)
    return x, weight, shape[1] // channels


@pytest.mark.parametrize(
    ("shape", "stride", "forward"),
    [
        ((96, 224, 112, 112), 2, 771_293_331),
        ((96, 224, 56, 56), 1, 308_871_315),
        ((96, 448, 56, 56), 2, 386_531_475),
        ((96, 448, 28, 28), 1, 155_320_467),
        ((96, 1232, 28, 28), 2, 268_173_459),
        ((96, 1232, 14, 14), 1, 109_215_891),
        ((96, 3024, 14, 14), 2, 170_533_011),
    ],
)
def test_groups_of_a_regnet_are_padded(shape, stride, forward):
    """112 channels are 128, in all groups."""
    assert ahead(shape, 112, stride) == pytest.approx(forward, abs=512)


@pytest.mark.parametrize(
    ("shape", "channels", "stride", "forward"),
    [
        ((128, 888, 8, 8), 24, 1, 39_479_808),
        ((16, 336, 32, 32), 24, 2, 18_608_640),
        ((32, 432, 14, 14), 48, 1, 15_114_752),
        ((4, 192, 28, 28), 48, 1, 2_574_848),
        ((1, 96, 56, 56), 48, 1, 1_287_680),
        ((32, 2048, 7, 7), 64, 1, 3_801_600),
        ((32, 2048, 14, 14), 64, 2, 8_618_496),
    ],
)
def test_forward(shape, channels, stride, forward):
    """All groups padded to a power of two, or eight of them in eights of channels."""
    assert ahead(shape, channels, stride) == pytest.approx(forward, abs=512)


@pytest.mark.parametrize(
    ("shape", "channels", "stride", "measured"),
    [
        ((128, 888, 8, 8), 24, 1, 39_479_808),
        ((32, 432, 14, 14), 48, 1, 15_114_752),
        ((4, 192, 28, 28), 48, 1, 0),
        ((32, 2048, 7, 7), 64, 1, 15_204_864),
        ((1, 1024, 64, 64), 64, 1, 8_978_944),
        ((16, 1008, 14, 14), 48, 2, 3_342_848),
    ],
)
def test_gradient_of_the_input(shape, channels, stride, measured):
    """As the forward, of other numbers of channels and samples; some of few positions copy nothing."""
    assert of_input(shape, channels, stride) == pytest.approx(measured, abs=512)


def test_channels_last_is_copied_where_kernels_run_eight_groups():
    """Then `x` and `y` are, without the weight; what is to be padded is copied whole, all else nowhere."""
    assert ahead((1, 512, 64, 64), 64, layout=LAST) == pytest.approx(8_389_120, abs=512)
    assert ahead((16, 256, 28, 28), 64, 2, LAST) == pytest.approx(8_028_224, abs=512)
    assert ahead((4, 432, 28, 28), 48, 2, LAST) == pytest.approx(5_179_904, abs=512)
    assert of_input((16, 256, 28, 28), 64, 2, LAST) == pytest.approx(8_028_224, abs=512)
    assert ahead((16, 256, 28, 28), 32, layout=LAST) == 0


@pytest.mark.parametrize(
    ("shape", "channels", "stride", "measured"),
    [
        ((48, 576, 14, 14), 24, 1, 29_671_639),
        ((48, 216, 28, 28), 24, 1, 44_992_867),
        ((48, 216, 56, 56), 24, 2, 108_546_064),
        ((16, 1008, 14, 14), 48, 2, 12_085_760),
        ((128, 1008, 7, 7), 48, 1, 9_967_104),
    ],
)
def test_gradient_of_the_weight(shape, channels, stride, measured):
    """The copies of padded channels, beside which sums are small."""
    assert of_weight(shape, channels, stride) == pytest.approx(measured, rel=0.04)
