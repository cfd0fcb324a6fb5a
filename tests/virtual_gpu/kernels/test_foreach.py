"""What operators on lists of tensors take: the events of an H200, torch 2.11+cu130, 2026-11-28."""

import pytest
import torch
from torch import nn

from tests.virtual_gpu.cards import card_of, events_on, slugs

pytestmark = pytest.mark.torch

CLIPPED = [-4, -4, -4, 4, 4, 4, -4, -4, 4, -4, -4]


def parameters(*sizes):
    """Parameters with gradients."""
    made = [nn.Parameter(torch.zeros(size, device="cuda")) for size in sizes]
    for parameter in made:
        parameter.grad = torch.zeros_like(parameter)
    return made


@pytest.mark.parametrize("foreach", [None, True])
def test_clip_grad_norm(foreach):
    """One partial norm for each 65,536 elements of the largest gradient and each gradient."""
    with card_of("h200") as gpu:
        given = parameters(100_000, 1_000_000, 30)
        with events_on(gpu) as events:
            nn.utils.clip_grad_norm_(given, 1.0, foreach=foreach)

    assert [192, 4, 4, 4, -192, 12, 4, -12, *CLIPPED] == events[: 8 + len(CLIPPED)]


def test_norm_of_an_order_without_a_kernel():
    """The loop over the tensors is not priced: it is listed."""
    with card_of("h200") as gpu:
        torch._foreach_norm(parameters(1000), 3)

    assert ["unknown-operator"] == slugs(gpu)


def test_fused_adam_with_a_tensor_for_a_learning_rate():
    """torch has no fake kernel for it; its steps need nothing beside the states."""
    with card_of("h200") as gpu:
        given = parameters(1000)
        rate = torch.tensor(0.001, device="cuda")
        optimizer = torch.optim.Adam(given, lr=rate, fused=True, capturable=True)
        with events_on(gpu) as events:
            optimizer.step()

    assert [4, 4000, 4000] == events
