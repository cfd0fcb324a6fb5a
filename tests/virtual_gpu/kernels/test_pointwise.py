"""Small tensors of pointwise kernels, against an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("base", "expected"), [(2.0, [20, 8, -8]), (1.0, [20])])
def test_a_power_of_a_number(virtual_gpu, base, expected):
    """The base is a double on the card."""
    exponent = torch.randn(5, device="cuda")
    with events_on(virtual_gpu) as events:
        kept = base**exponent

    assert expected == events
    assert (5,) == tuple(kept.shape)


@pytest.mark.parametrize(("size", "step", "num_bytes"), [(3, 1, [192, -192]), (3, 2, [184, -184]), (2, 2, [])])
def test_gradient_of_windows(virtual_gpu, size, step, num_bytes):
    """Windows that overlap need the positions that they cover."""
    x = torch.randn(24, 24, 24, 24, device="cuda", requires_grad=True)
    windows = x.unfold(1, size, step)
    gradient = torch.ones_like(windows)
    with events_on(virtual_gpu) as events:
        windows.backward(gradient)

    assert [1327104, *num_bytes] == events


def test_a_gradient_that_is_zero_everywhere(virtual_gpu):
    """That of sgn has no memory."""
    x = torch.randn(20, 20, device="cuda", requires_grad=True)
    sign = x.sgn()
    gradient = torch.ones_like(sign)
    with events_on(virtual_gpu) as events:
        sign.backward(gradient)

    assert [] == events


@pytest.mark.parametrize(("dtype", "expected"), [(torch.float16, [48, 96, -96]), (torch.float32, [96])])
def test_probabilities(virtual_gpu, dtype, expected):
    """In half they are read as single ones."""
    probabilities = torch.rand(2, 3, 4, device="cuda", dtype=dtype)
    with events_on(virtual_gpu) as events:
        _drawn = torch.bernoulli(probabilities)

    assert expected == events


def test_magnitude_of_a_spectrum(virtual_gpu):
    """It is complex at first: 1,036,224 bytes of the spectrum for 518,112 of the result."""
    spectrum = torch.randn(257, 504, device="cuda", dtype=torch.complex64)
    with events_on(virtual_gpu) as events:
        _magnitude = spectrum.abs()

    assert [518_112, 1_036_224, -1_036_224] == events
