"""Steps of the card, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch
import torch.nn.functional as F

from ..cards import events_on

pytestmark = pytest.mark.torch


def test_one_hot_is_one_block(virtual_gpu):
    """Ones are scattered into zeros; no comparison of all classes is made."""
    index = torch.zeros(1000, dtype=torch.int64, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = F.one_hot(index, 5000)

    assert [40_000_000] == events


def test_the_gradient_of_a_cumulative_product(virtual_gpu):
    """It is divided by the input: the loops of a subclass are not run."""
    tensor = torch.ones(24, 24, 24, device="cuda", requires_grad=True)
    products = tensor.cumprod(0)
    gradient = torch.ones_like(products)
    with events_on(virtual_gpu) as events:
        products.backward(gradient)

    size, mask = 55_296, 13_824
    assert [size, mask, 1, -1, size, size, size, -size, -size, size, -size, -mask, -size] == events


def test_multinomial(virtual_gpu):
    """The weights are checked, then the largest quotients of them and noise are taken."""
    weights = torch.ones(3, 10, device="cuda")
    with events_on(virtual_gpu) as events:
        kept = torch.multinomial(weights, 3)

    assert [72, 4, 1, 4, 1, 1] == events[:6]
    assert [120, 36] == [size for size in events if size in (120, 36)]
    assert (3, 3) == tuple(kept.shape)
