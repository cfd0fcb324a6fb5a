"""Distances, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def test_the_gradient_of_a_distance_goes_through_a_buffer_of_all_pairs(virtual_gpu):
    """Which is summed, by several thread blocks where there are many pairs."""
    left = torch.empty(4, 1024, 3, device="cuda", requires_grad=True)
    right = torch.empty(4, 1024, 3, device="cuda")
    distances = torch.cdist(left, right, p=1.0)
    gradient = torch.ones_like(distances)
    with events_on(virtual_gpu) as events:
        distances.backward(gradient)

    pairs, partial = 50_331_648, 100_663_296
    assert [49_152, pairs, partial, 384, -384, -partial, -pairs] == events


def test_euclidean_distances_are_a_product(virtual_gpu):
    """Of points with their squares and ones beside them."""
    left, right = torch.empty(4, 2000, 3, device="cuda"), torch.empty(4, 20, 3, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.cdist(left, right)

    assert [96_000, 32_000, -96_000, 32_000, 960, 320, -960, 320] == [size for size in events if abs(size) < 2**24][:8]


def test_the_gradient_of_pairs_of_one_set(virtual_gpu):
    """A row for each other point."""
    points = torch.empty(500, 64, device="cuda", requires_grad=True)
    distances = torch.nn.functional.pdist(points)
    gradient = torch.ones_like(distances)
    with events_on(virtual_gpu) as events:
        distances.backward(gradient)

    assert [128_000, 63_872_000, -63_872_000] == events
