"""Sorts, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def rows(*shape, dtype=torch.float32):
    """A tensor on the card."""
    return torch.empty(*shape, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    ("shape", "dim", "temporaries"),
    [
        ((4, 1024, 64), 1, [8192, -8192]),
        ((300_000,), 0, [2_400_000, 3_666_175, -3_666_175, -2_400_000]),
        ((64, 5000), -1, [2_560_000, 2_560_000, 1_280_000, 3_910_143, -3_910_143, -1_280_000, 59_903, -59_903,
                          -2_560_000, -2_560_000]),
        ((300, 5000), -1, [12_000_000, 18_000_383, -18_000_383, -12_000_000]),
    ],
)  # fmt: skip
def test_sort(virtual_gpu, shape, dim, temporaries):
    """Short rows are sorted in place; a long one by CUB, several together, many as segments."""
    tensor = rows(*shape)
    with events_on(virtual_gpu) as events:
        _kept = tensor.sort(dim)

    assert [4 * tensor.numel(), 8 * tensor.numel(), *temporaries] == events


def test_rows_that_are_not_in_line_are_copied(virtual_gpu):
    """A sort of long columns works on a copy of the values, and on others of both results."""
    tensor = rows(5000, 200)
    with events_on(virtual_gpu) as events:
        _kept = tensor.sort(0)

    assert [4_000_000, 8_000_000, 4_000_000, 4_000_000, 8_000_000] == events[:5]


@pytest.mark.parametrize(
    ("shape", "k", "dtype", "temporaries"),
    [
        ((1_000_000,), 100, torch.float32, [4, 8, 8, 400_384, 1024, 3128, 3128, 1279, -1279, 1279, -1279]),
        ((16, 50_257), 50, torch.bfloat16, [32, 128, 128, 409_600, 16_384, 3200, 3200, 1279, -1279, 1279, -1279]),
        ((4, 1024, 64), 16, torch.float32, []),
    ],
)  # fmt: skip
def test_topk(virtual_gpu, shape, k, dtype, temporaries):
    """Long rows are divided among thread blocks, which count digits."""
    tensor = rows(*shape, dtype=dtype)
    with events_on(virtual_gpu) as events:
        kept = tensor.topk(k)

    numel = kept.values.numel()
    assert [dtype.itemsize * numel, 8 * numel, *temporaries] == events[: 2 + len(temporaries)]
    assert (numel * (8 + dtype.itemsize)) == sum(events)


def test_median_of_all(virtual_gpu):
    """All elements are sorted first."""
    tensor = rows(3, 5)
    with events_on(virtual_gpu) as events:
        _kept = tensor.median()

    assert [60, 120, 120, -120, -120, 1, 4, -1, -60] == events


@pytest.mark.parametrize(
    ("count", "events_measured"),
    [
        (1000, [8000, 8, -8, 8000, 4000, 4000, 1, -1, -4000, -4000, -8000]),
        (100_000, [800_000, 8, -8, 800_000, 800_000, 800_000, 1_633_279, -1_633_279, -800_000, -800_000, -800_000]),
    ],
)
def test_randperm(virtual_gpu, count, events_measured):
    """Random keys are sorted, of 32 bits where those suffice."""
    with events_on(virtual_gpu) as events:
        _kept = torch.randperm(count, device="cuda")

    assert events_measured == events
