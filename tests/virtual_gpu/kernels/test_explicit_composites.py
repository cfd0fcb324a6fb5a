"""Operators that run in steps, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from peaksight.virtual_gpu.kernels.explicit_composites import KEYS, OPERATORS

from ..cards import births_on, events_on, requested

pytestmark = pytest.mark.torch


def test_each_has_a_function_for_every_device():
    """Else there would be no steps to run."""
    assert [] == [op for op in OPERATORS if not any(op.has_kernel_for_dispatch_key(key) for key in KEYS)]


def test_logsumexp(virtual_gpu):
    """The maxima, which of them are infinite, and the exponentials; the output is taken after them."""
    x = torch.randn(5, 5, device="cuda")
    with events_on(virtual_gpu) as events:
        kept = torch.logsumexp(x, 1)

    assert [20, 20, 5, -5, -20, 100, 20, -100, -20] == events
    assert (5,) == tuple(kept.shape)


def test_dist(virtual_gpu):
    """The difference of both tensors, then its norm."""
    pair = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")
    with births_on(virtual_gpu) as births:
        torch.dist(*pair)

    assert [64 * 64 * 4, 4] == requested(births)[:2]
