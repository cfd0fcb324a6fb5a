"""A script that seeds nothing draws the same numbers in each simulated run."""

import random

import numpy as np
import pytest
import torch

from peaksight.overlays.seeds import seeded

pytestmark = pytest.mark.torch


def _draws():
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_draws_begin_at_the_seed():
    """As if each generator had been seeded by the script."""
    with seeded(3):
        drawn = _draws()
    with seeded(4):
        others = _draws()
    random.seed(3), np.random.seed(3), torch.manual_seed(3)

    assert drawn == _draws()
    assert not set(drawn) & set(others)


def test_generators_go_on_where_they_were():
    """The process of a notebook or a test draws its own numbers afterwards."""
    random.seed(7), np.random.seed(7), torch.manual_seed(7)
    undisturbed = _draws()
    random.seed(7), np.random.seed(7), torch.manual_seed(7)
    with seeded(3):
        _draws()

    assert _draws() == undisturbed
