"""Sums along a dimension, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def test_one_row_is_scanned_by_cub(virtual_gpu):
    """With the state of its tiles."""
    tensor = torch.zeros(100_000, dtype=torch.int64, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = tensor.cumsum(0)

    assert [800_000, 2815, -2815] == events


def test_several_rows_need_nothing(virtual_gpu):
    """Another kernel scans them."""
    tensor = torch.zeros(100, 1000, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = tensor.cumsum(1)

    assert [400_000] == events


def test_truth_values_are_summed_as_integers(virtual_gpu):
    """In a copy."""
    tensor = torch.zeros(24, 24, 24, dtype=torch.bool, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = tensor.cumsum(0)

    assert [110_592, 110_592, -110_592] == events
