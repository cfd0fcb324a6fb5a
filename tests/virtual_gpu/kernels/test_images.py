"""What resampling and pooling take: the events of an H200, torch 2.11+cu130, 2026-11-28."""

import pytest
import torch
import torch.nn.functional as F

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch

LAYOUTS = (torch.contiguous_format, torch.channels_last)


def events_of(function, layout=torch.contiguous_format, dtype=torch.float32, shape=(4, 32, 48, 48)):
    """Forward and backward of `function` on an image that is a leaf."""
    with card_of("h200") as gpu:
        x = torch.randn(*shape, device="cuda").to(dtype, memory_format=layout).requires_grad_()
        with events_on(gpu) as forward:
            y = function(x)
        gradient = torch.ones_like(y)
        with events_on(gpu) as backward:
            y.backward(gradient)
    return forward, backward


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_is_one_kernel(mode, layout):
    """Not the index arithmetic of torch._decomp; channels-last stays."""
    forward, backward = events_of(lambda x: F.interpolate(x, scale_factor=2, mode=mode), layout, torch.bfloat16)

    assert [2_359_296] == forward
    assert [589_824] == backward


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nearest_copies_a_part_of_a_gradient(layout):
    """Of what was concatenated, as in a denoising network."""
    shape = (64, 256, 16, 16)
    with card_of("h200") as gpu:
        x = torch.empty(shape, device="cuda", dtype=torch.half).to(memory_format=layout).requires_grad_()
        whole = F.interpolate(x, scale_factor=2)
        gradient = torch.empty(64, 384, 32, 32, device="cuda", dtype=torch.half).to(memory_format=layout)
        with events_on(gpu) as backward:
            whole.backward(gradient[:, :256])

    assert [8_388_608, 33_554_432, -33_554_432] == backward


IMAGE = 1_179_648
NHWC = torch.channels_last


@pytest.mark.parametrize(
    ("function", "layout", "expected_forward", "expected_backward"),
    [
        (lambda x: F.unfold(x, 3), LAYOUTS[0], [IMAGE, 9_750_528, -IMAGE], [9_750_528]),
        (lambda x: F.unfold(x, 3), NHWC, [IMAGE, IMAGE, 9_750_528, -IMAGE, -IMAGE], [9_750_528, IMAGE, -9_750_528]),
        (lambda x: F.glu(x, 1), NHWC, [589_824], [IMAGE, IMAGE, -IMAGE]),
        (
            lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), NHWC,
            [4_718_592], [IMAGE, 4_718_592, -4_718_592, IMAGE, -IMAGE],
        ),
        (
            lambda x: F.interpolate(x, size=(20, 20), mode="bilinear", antialias=True), NHWC,
            [204_800, 204_800, IMAGE, -IMAGE, -204_800], [IMAGE, 204_800, -204_800],
        ),
        (
            lambda x: F.adaptive_max_pool2d(x, 7), NHWC,
            [25_088, 50_176, 25_088, 50_176, IMAGE, -IMAGE, -50_176, -25_088],
            [IMAGE, 25_088, 50_176, IMAGE, -IMAGE, -50_176, -25_088, -50_176],
        ),
    ],
)  # fmt: skip
def test_copies(function, layout, expected_forward, expected_backward):
    """Kernels for contiguous tensors copy; unfold makes its result larger, its gradient stays in the larger block."""
    forward, backward = events_of(function, layout)

    assert expected_forward == forward
    assert expected_backward == backward


def test_affine_grid_step_by_step():
    """The grid of ones, and lines between -1 and 1 for each axis."""
    line = [192, 192, 192, -192, -192, -192]
    with card_of("h200") as gpu:
        theta = torch.randn(4, 2, 3, device="cuda")
        with events_on(gpu) as forward:
            grid = F.affine_grid(theta, [4, 32, 48, 48], align_corners=False)

    assert [110_592, *line, *line, 73_728, -110_592] == [size for size in forward if abs(size) < 2**20]
    assert (4, 48, 48, 2) == grid.shape


def test_fractional_max_pool3d():
    """torch has no fake kernel for it: three random numbers a channel, values and positions."""
    forward, backward = events_of(lambda x: F.fractional_max_pool3d(x, 2, output_size=2), shape=(2, 3, 5, 5, 5))

    assert [72, 192, 384, -72] == forward
    assert [3000, -384] == backward
