"""Whole tensors compared, against an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def test_equal(virtual_gpu):
    """One byte an element, and one for all."""
    pair = torch.randn(20, device="cuda"), torch.randn(20, device="cuda")
    with events_on(virtual_gpu) as events:
        passes = torch.equal(*pair)

    assert [20, 1] == events[:2]
    assert passes


def test_allclose(virtual_gpu):
    """Closeness is worked out element by element; what cannot be known passes."""
    pair = torch.randn(20, device="cuda"), torch.randn(20, device="cuda")
    with events_on(virtual_gpu) as events:
        passes = torch.allclose(*pair)

    assert 80 in events
    assert passes


def test_other_shapes_are_not_equal(virtual_gpu):
    """Nothing is compared."""
    with events_on(virtual_gpu) as events:
        assert not torch.equal(torch.ones(2, device="cuda"), torch.ones(3, device="cuda"))

    assert [8, 12, -12, -8] == events or [8, 12, -8, -12] == events


def test_inverse_of_stft(virtual_gpu):
    """`istft` asks whether its windows leave gaps: they do not, in a run that works."""
    window = torch.hann_window(2048, device="cuda")
    spectrum = torch.stft(torch.randn(2, 32000, device="cuda"), 2048, 512, window=window, return_complex=True)

    assert (2, 32000) == tuple(torch.istft(spectrum, 2048, 512, window=window, length=32000).shape)
