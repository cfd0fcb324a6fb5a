"""Gradients of products, against an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch


def gradient_events(gpu, product):
    """What the backward of `product(x)` takes and gives back, for x of 4096 times 768 numbers."""
    result = product(torch.randn(4096, 768, device="cuda", requires_grad=True))
    gradient = torch.ones_like(result)
    with events_on(gpu) as events:
        result.backward(gradient)
    return events


def test_of_all_elements(virtual_gpu):
    """Zeros are looked for, and the product is divided by each factor."""
    events = gradient_events(virtual_gpu, torch.prod)

    assert 3145728 == events[0]
    assert [-3145728, 12582912, 12582912, -12582912] == events[-4:]


@pytest.mark.parametrize("keepdim", [False, True])
def test_along_rows(virtual_gpu, keepdim):
    """Zeros are counted by row, and all of them once more."""
    events = gradient_events(virtual_gpu, lambda x: x.prod(-1, keepdim=keepdim))

    assert [3145728, 32768, 25165824, -25165824, 8, -8, 12582912, 12582912, -12582912] == events[:-2]
    assert [-3145728, -32768] == sorted(events[-2:])


def test_in_another_type(virtual_gpu):
    """The factors are converted for the gradient, too."""
    x = torch.randn(20, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    result = x.prod(dtype=torch.float32)
    result.backward()

    assert torch.float32 == result.dtype
    assert (torch.bfloat16, (20,)) == (x.grad.dtype, tuple(x.grad.shape))


def test_without_a_graph(virtual_gpu):
    """In inference mode it is one operator."""
    with torch.inference_mode():
        assert (3,) == tuple(torch.randn(3, 4, device="cuda").prod(1).shape)
