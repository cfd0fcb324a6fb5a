"""Indexing, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on, slugs

pytestmark = pytest.mark.torch

SORTED = [24_000, 24_000, -24_000, 24_000, 24_000, 24_000, 53_759, -53_759, -24_000, -24_000, -24_000, -24_000]
CHECKS = [8, 1, -1, -8] * 2


def test_values_that_are_added_are_sorted(virtual_gpu):
    """The index of every row is checked and computed, then sorted on as many bits as there are rows."""
    table, index = torch.empty(5000, 64, device="cuda"), torch.zeros(3000, dtype=torch.int64, device="cuda")
    values = torch.empty(3000, 64, device="cuda")
    with events_on(virtual_gpu) as events:
        table.index_put_((index,), values, accumulate=True)

    assert [*CHECKS, *SORTED] == events


def test_the_gradient_of_indexing(virtual_gpu):
    """The forward pass has checked the indices."""
    table = torch.empty(5000, 64, device="cuda", requires_grad=True)
    index = torch.zeros(3000, dtype=torch.int64, device="cuda")
    rows = table[index]
    gradient = torch.ones_like(rows)
    with events_on(virtual_gpu) as events:
        rows.backward(gradient)

    assert [1_280_000, *SORTED] == events


def test_indices_are_copied_to_equal_strides(virtual_gpu):
    """Where they are broadcast against each other."""
    points = torch.empty(4, 1024, 64, device="cuda")
    batch, rows = torch.arange(4, device="cuda")[:, None], torch.zeros(4, 500, dtype=torch.int64, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = points[batch, rows]

    assert [16_000, 512_000, -16_000] == events


def test_a_mask_is_its_positions(virtual_gpu):
    """An expanded mask is copied; the positions in both dimensions live until the rows are taken."""
    points = torch.empty(4, 1024, 64, device="cuda")
    mask = torch.tensor([[True], [False], [True], [True]]).cuda().expand(-1, 1024)
    with events_on(virtual_gpu) as events:
        _kept = points[mask]

    assert [4096, 4, 1, -1, 49_152, 1023, -1023, -4, -4096, 786_432, -49_152] == events


def test_a_number_is_filled_in_where_a_mask_is_true(virtual_gpu):
    """Without its positions, and without an upper bound for how many there are."""
    points = torch.empty(1000, device="cuda")
    mask = points > 0
    with events_on(virtual_gpu) as events:
        points[mask] = 0.0

    assert [4, -4] == events
    assert "shapes" not in slugs(virtual_gpu)


def test_a_mean_of_what_is_scattered(virtual_gpu):
    """Ones are scattered to count."""
    table, source = torch.zeros(5000, 64, device="cuda"), torch.empty(1000, 64, device="cuda")
    index = torch.zeros(1000, 64, dtype=torch.int64, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = table.scatter_reduce(0, index, source, "mean")

    assert [1_280_000, 256_000, 1_280_000, 320_000, -320_000, -1_280_000, -256_000] == events


def test_counting_values(virtual_gpu):
    """The lowest and the highest are read before."""
    values = torch.arange(1000).cuda()
    with events_on(virtual_gpu) as events:
        _kept = torch.bincount(values)

    assert [8, -8, 8, -8, 8000] == events


def test_weighed_counts_are_doubles(virtual_gpu):
    """In as many bins as the largest value asks for."""
    values = torch.arange(5).cuda()

    assert (5,) == tuple(torch.bincount(values, weights=values).shape)


def test_indices_of_the_host_are_copied(virtual_gpu):
    """For the length of the operator, in both passes."""
    table = torch.empty(10, 64, device="cuda", requires_grad=True)
    with events_on(virtual_gpu) as events:
        rows = table[torch.tensor([0, 1])]
    rows.sum().backward()

    assert [16, 512, -16] == events
    assert (10, 64) == tuple(table.grad.shape)
