"""Masks and unique values, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def halves(count):
    """A mask of which the host knew that every second element is true."""
    return (torch.arange(count) % 2 == 0).cuda()


@pytest.mark.parametrize(("count", "counting"), [(1000, 1), (100_000, 21_503)])
def test_nonzero(virtual_gpu, count, counting):
    """A count, the positions, and CUB's selection."""
    mask = halves(count)
    with events_on(virtual_gpu) as events:
        _kept = mask.nonzero()

    assert [4, counting, -counting, 4 * count, 1023, -1023, -4] == events


def test_masked_select(virtual_gpu):
    """The positions are alive while the values are taken."""
    tensor, mask = torch.empty(1000, device="cuda"), halves(1000)
    with events_on(virtual_gpu) as events:
        _kept = tensor.masked_select(mask)

    assert [4, 1, -1, 4000, 1023, -1023, -4, 2000, -4000] == events


def test_a_mask_that_is_expanded_is_copied(virtual_gpu):
    """As large as the tensor, whose rows it all selects from."""
    tensor, mask = torch.empty(40, 40, device="cuda"), halves(40)
    with events_on(virtual_gpu) as events:
        kept = tensor.masked_select(mask)

    assert [1600, 4, 1, -1, 12_800, 1023, -1023, -4, -1600, 3200, -12_800] == events
    assert (800,) == tuple(kept.shape)


def test_masked_scatter(virtual_gpu):
    """How many values come before each element."""
    tensor, mask = torch.empty(24, 24, device="cuda"), torch.zeros(24, 24, dtype=torch.bool, device="cuda")
    with events_on(virtual_gpu) as events:
        tensor.masked_scatter_(mask, tensor.clone())

    assert [2304, 4608, 1279, -1279, -4608, -2304] == events


def test_unique(virtual_gpu):
    """The sorted values, then the unique ones, which keep the size of all."""
    tensor = torch.arange(1000).cuda()
    with events_on(virtual_gpu) as events:
        _kept = tensor.unique()

    assert [8000, 1, -1, 8000, 8, 1023, -1023, -8, -8000] == events


def test_unique_with_inverse(virtual_gpu):
    """Positions are sorted along."""
    tensor = torch.arange(1000).cuda()
    with events_on(virtual_gpu) as events:
        _kept = tensor.unique(return_inverse=True)

    assert [8000, 8000, 8000, 1, -1, -8000] == events[:6]
    assert 16_000 == sum(events)


def test_few_values_are_compared_with_every_element(virtual_gpu):
    """A truth value for each pair."""
    elements, tested = torch.arange(100_000).cuda(), torch.arange(50).cuda()
    with events_on(virtual_gpu) as events:
        _kept = torch.isin(elements, tested)

    assert [100_000, 5_000_000, 100_000, -100_000, -5_000_000] == events


def test_repetitions(virtual_gpu):
    """Where each begins, and whether their numbers are valid."""
    repeats = torch.ones(1000, dtype=torch.int64).cuda()
    with events_on(virtual_gpu) as events:
        _kept = torch.repeat_interleave(repeats)

    assert [8000, 1279, -1279, 1000, 1, -1, -1000, 8000, -8000] == events


def test_unique_truth_values(virtual_gpu):
    """They are counted, not sorted; there is room for two."""
    with events_on(virtual_gpu) as events:
        kept = halves(1000).unique()

    assert [4, 1, -1, 2, -4] == [size for size in events if abs(size) < 1000]
    assert (2,) == tuple(kept.shape)


def test_filling_rows_with_a_tensor(virtual_gpu):
    """A gradient reaches the value, too: from each row that was filled, once."""
    tensor, rows = torch.empty(24, 24, device="cuda", requires_grad=True), torch.tensor([0, 2, 2]).cuda()
    value = torch.tensor(1.0, device="cuda", requires_grad=True)
    tensor.index_fill(0, rows, value).sum().backward()

    assert () == tuple(value.grad.shape)


def test_the_gradient_of_selected_values(virtual_gpu):
    """They are scattered into zeros, in place."""
    tensor, mask = torch.empty(10, 10, device="cuda", requires_grad=True), torch.ones(10, 10, dtype=torch.bool).cuda()
    selected = tensor.masked_select(mask)
    gradient = torch.ones_like(selected)
    with events_on(virtual_gpu) as events:
        selected.backward(gradient)

    assert [400, 800, 1279, -1279, -800] == events
