"""How often cycles are looked for."""

import gc

import pytest
import torch

from peaksight.virtual_gpu.garbage import collect_as_usual, collect_rarely

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def usual():
    """The thresholds before the test, and after it."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_as_usual_from_the_first_use_of_the_card(virtual_gpu, usual):
    """A cycle that holds memory of the card is found when it would be there."""
    collect_rarely()
    torch.ones(1)
    assert usual != gc.get_threshold()

    torch.ones(1, device="cuda")
    assert usual == gc.get_threshold()


def test_what_the_script_says_stays():
    """Thresholds that a script has set are its own."""
    collect_rarely()
    gc.set_threshold(5, 6, 7)
    collect_as_usual()

    assert (5, 6, 7) == gc.get_threshold()
