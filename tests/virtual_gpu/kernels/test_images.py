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
