"""A script that seeds nothing draws the same numbers in each simulated run."""

import random

import numpy as np
import pytest
import torch

from peaksight.overlays.seeds import has_set_a_seed, seeded

pytestmark = pytest.mark.torch


def _draws():
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_draws_begin_at_the_seed():
    """As if each generator had been seeded by the script."""
    with seeded(3):
        drawn = _draws()
    with seeded(4):
        others = _draws()
    with seeded(3):
        assert drawn == _draws()
    random.seed(3), np.random.seed(3)

    assert drawn[:2] == _draws()[:2]
    assert not set(drawn) & set(others)


def test_generators_go_on_where_they_were():
    """The process of a notebook or a test draws its own numbers afterwards."""
    random.seed(7), np.random.seed(7), torch.manual_seed(7)
    undisturbed = _draws()
    random.seed(7), np.random.seed(7), torch.manual_seed(7)
    with seeded(3):
        _draws()

    assert _draws() == undisturbed


def test_a_seed_of_the_script_is_known():
    """One that was set before, in a notebook, is not the script's."""
    torch.manual_seed(0)
    with seeded(0):
        assert not has_set_a_seed()
        torch.manual_seed(0)
        assert has_set_a_seed()
