"""Histograms and segments, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on, slugs

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("bounds", "extrema"), [((0, 9), []), ((0, 0), [4, -4, 4, -4])])
def test_a_histogram_without_a_range_looks_for_it(virtual_gpu, bounds, extrema):
    """The smallest and the largest number, after the bins were made."""
    numbers = torch.empty((), device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.histc(numbers, 10, *bounds)

    assert [40, *extrema] == events
    assert "unknown-operator" not in slugs(virtual_gpu)


def of_lengths(**options):
    """Four segments of 24 numbers by their lengths, and the gradient."""
    lengths = torch.full((4,), 6, device="cuda")
    return {"lengths": lengths, "axis": 0, **options}


def of_offsets():
    """The same, by where they begin and end."""
    return {"offsets": torch.arange(0, 25, 6, device="cuda"), "axis": 0}


SUMS = [8, 40, -8, 1279, -1279]
CHECKED = [8, -8, 8, 1, 1, -1, -1, -8]


@pytest.mark.parametrize(
    ("options", "forward", "backward"),
    [
        (of_lengths, [*CHECKED, 16, *SUMS, 1, -1, -40], [96, *SUMS, -40]),
        (lambda: of_lengths(unsafe=True), [16, *SUMS, 1, -1, -40], [96, *SUMS, -40]),
        (of_offsets, [16, 32, 1, -1, -32], [96, 32, -32]),
    ],
)
def test_segments(virtual_gpu, options, forward, backward):
    """Where each begins; offsets are taken apart into lengths."""
    numbers = torch.empty(24, device="cuda", requires_grad=True)
    arguments = options()
    with events_on(virtual_gpu) as of_forward:
        out = torch.segment_reduce(numbers, "sum", **arguments)
    gradient = torch.empty_like(out)
    with events_on(virtual_gpu) as of_backward:
        out.backward(gradient)

    assert forward == of_forward
    assert backward == of_backward
