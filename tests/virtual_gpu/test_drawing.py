"""Random numbers of the card that decide lengths and branches."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from peaksight.overlays.seeds import seeded

from .cards import h100, slugs

pytestmark = pytest.mark.torch

ROWS, WORDS, KINDS = 32, 512, 50_000
# Five standard deviations of how many of so many words a probability of 0.3 hides.
TOLERANCE = 5 * (ROWS * WORDS * 0.3 * 0.7) ** 0.5


def by_probabilities():
    """As language models hide words."""
    return torch.bernoulli(torch.full((ROWS, WORDS), 0.3, device="cuda")).bool()


def by_threshold():
    """As people write it."""
    return torch.rand(ROWS, WORDS, device="cuda") < 0.3


def by_threshold_alike():
    """Of the shape of what is hidden, which nobody knows."""
    return torch.rand_like(torch.randn(ROWS, WORDS, device="cuda")) < 0.3


def in_place():
    """Into memory that held something else."""
    return torch.empty(ROWS, WORDS, device="cuda").bernoulli_(0.3) != 0


def by_labels():
    """Labels that were drawn, all but the hidden ones written over."""
    labels = torch.randint(5, KINDS, (ROWS, WORDS), device="cuda")
    labels[~by_probabilities()] = -100
    return labels != -100


MASKS = [by_probabilities, by_threshold, by_threshold_alike, in_place, by_labels]


@pytest.mark.parametrize("mask", MASKS)
def test_as_many_are_true_as_is_probable(virtual_gpu, mask):
    """Neither all nor a stand-in, and that it was chance is noted."""
    words = torch.randn(ROWS, WORDS, 4, device="cuda")

    assert abs(len(words[mask()]) - ROWS * WORDS * 0.3) < TOLERANCE
    assert "chances" in slugs(virtual_gpu)
    assert "shapes" not in slugs(virtual_gpu)


def test_a_number_that_was_drawn(virtual_gpu):
    """It is one of those that it may be, and reading it is noted."""
    assert torch.randint(3, 7, (1,), device="cuda").item() in range(3, 7)
    assert ["chances"] == slugs(virtual_gpu)[:1]


def test_nothing_is_noted_of_what_decides_nothing(virtual_gpu):
    """Labels that a loss takes, and a mask that is multiplied with."""
    logits = torch.randn(ROWS, 10, device="cuda", requires_grad=True)
    loss = F.cross_entropy(logits, torch.randint(10, (ROWS,), device="cuda"))
    (loss * torch.rand(1, device="cuda")).backward()

    assert not {"chances", "shapes", "values"} & set(slugs(virtual_gpu))


def test_another_write_ends_it(virtual_gpu):
    """What is written from an activation is not chance but unknown."""
    mask = by_threshold()
    mask[:, 0] = torch.randn(ROWS, device="cuda") > 0

    assert ROWS * WORDS == len(mask.nonzero())
    assert "shapes" in slugs(virtual_gpu)


def test_the_numbers_of_the_script_stay_as_they_are(virtual_gpu):
    """What is drawn on the card takes none of those of the host."""
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    by_probabilities()

    assert torch.equal(expected, torch.rand(3))


def test_weights_are_not_drawn(virtual_gpu):
    """Nobody looks at them, and they would take the time of the host."""
    layer = nn.Linear(8, 8, device="cuda")

    assert 1.0 == layer.weight.sum().item()
    assert "values" in slugs(virtual_gpu)


def test_each_run_draws_the_same():
    """GIVEN two runs in one process, THEN both have the same masks."""
    counts = []
    for _run in range(2):
        with h100(max_steps=None):
            counts.append([len(by_threshold().nonzero()) for _ in range(3)])

    assert counts[0] == counts[1]


@pytest.mark.parametrize("seed", [None, 0])
def test_layers_that_are_dropped_without_a_seed_are_kept(seed):
    """As wav2vec 2.0 drops them; with a seed of the script those are dropped that a card's run drops."""
    with h100() as gpu, seeded(0):
        if seed is not None:
            torch.manual_seed(seed)
        numbers = [torch.rand([]).item() for _ in range(20)]

    assert (set(numbers) == {0.5}) is (seed is None)
    assert ("medians" in slugs(gpu)) is (seed is None)
