"""What rules say of blocks, and where the results stand among them."""

import pytest
import torch

from peaksight.virtual_gpu.kernels.temporaries import RESULTS, num_places

pytestmark = pytest.mark.torch


def test_a_block_of_no_bytes_is_no_place_of_results():
    """Although it is equal to one."""
    assert RESULTS == 0
    assert num_places((0, RESULTS, 512, -512, 0)) == 1


@pytest.mark.parametrize("value", [True, False])
def test_a_mask_without_dimensions(virtual_gpu, value):
    """Some of its temporaries have no bytes: the gradient is computed all the same."""
    target, source = (torch.zeros(24, 24, device="cuda", requires_grad=True) for _ in range(2))
    target.masked_scatter(torch.tensor(value, device="cuda"), source).sum().backward()

    assert target.grad.shape == source.grad.shape == (24, 24)
