"""Tiles of a last wave on cards of any number of multiprocessors."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peaksight.virtual_gpu.kernels.convolution_problem import TILE_BYTES, Convolution
from peaksight.virtual_gpu.kernels.cudnn_last_waves import num_sums
from peaksight.virtual_gpu.kernels.cudnn_weight_gradients import gradient_of_weight

pytestmark = pytest.mark.torch


@given(num_tiles=st.integers(1, 500), num_multiprocessors=st.integers(1, 200), most_parts=st.integers(0, 50))
def test_sums_fit_the_card(num_tiles, num_multiprocessors, most_parts):
    """GIVEN any product and card, THEN its last wave leaves no more sums than the card has multiprocessors."""
    sums = num_sums(num_tiles, num_multiprocessors, most_parts=most_parts)

    assert 0 <= sums <= num_multiprocessors
    assert sums == 0 or sums >= 2 * (num_tiles % num_multiprocessors)


@pytest.mark.parametrize(("num_multiprocessors", "sums"), [(132, 48), (108, 108), (72, 0), (48, 0), (24, 0), (36, 0)])
def test_a_card_whose_waves_are_full_shares_none_out(num_multiprocessors, sums):
    """144 half tiles of the gradient of a weight, of 256 channels to 512 filters; an RTX 4060 has 24 of them."""
    sizes = (16, 256, 14, 14), (16, 512, 14, 14), (512, 256, 3, 3)
    x, y, weight = (torch.empty(size, device="meta") for size in sizes)
    problem = Convolution(x, y, weight, (1, 1), (1, 1), 1, False, False)

    assert problem.copies() + sums * TILE_BYTES // 2 == gradient_of_weight(problem, num_multiprocessors)
