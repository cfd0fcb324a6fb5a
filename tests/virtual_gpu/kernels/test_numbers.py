"""Operators that make tensors of numbers: the events of an H200, torch 2.11+cu130, 2026-11-28."""

import pytest
import torch

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda mean, std: torch.normal(mean, std), [4, 1, -1, -4, 96, 4, 1, -1, -4]),
        (lambda mean, std: torch.normal(mean, 1.1), [96, 96, -96]),
        (lambda mean, std: torch.normal(2.7, std), [96, 96, -96]),
        (lambda mean, std: 0.9**mean, [96, 8, -8]),
        (lambda mean, std: 1.0**mean, [96]),
    ],
)
def test_numbers(draw, expected):
    """Deviations are looked at twice; a number beside a tensor becomes a tensor."""
    with card_of("h200") as gpu:
        mean, std = torch.zeros(3, 4, 2, device="cuda"), torch.ones(3, 4, 2, device="cuda")
        with events_on(gpu) as events:
            drawn = draw(mean, std)

    assert expected == events
    assert (3, 4, 2) == drawn.shape
