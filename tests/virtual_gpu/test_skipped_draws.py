"""What is drawn on the CPU after the weights of a model is what the real run draws."""

import random

import numpy
import pytest
import torch
from torch import nn

from helpers_commands import peaksight
from peaksight.overlays.seeds import seeded
from peaksight.virtual_gpu.tensors import skipped_draws

from .cards import h100, slugs

pytestmark = pytest.mark.torch


class Drawn(nn.Module):
    """A parameter that `init` fills."""

    def __init__(self, shape, init, dtype=torch.float32):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape, dtype=dtype))
        init(self.weight)


def of(shape, init, dtype=torch.float32):
    return lambda: Drawn(shape, init, dtype)


MODELS = {
    "linear": lambda: nn.Linear(300, 400),
    "embedding": lambda: nn.Embedding(5000, 48),
    "convolution": lambda: nn.Conv2d(3, 7, 3),
    "lstm": lambda: nn.LSTM(33, 65, 2),
    "attention": lambda: nn.TransformerEncoderLayer(96, 4, 200),
    "rest": of((101, 13), nn.init.normal_),
    "few": of((3, 5), nn.init.normal_),
    "bfloat16": of((64, 48), nn.init.normal_, torch.bfloat16),
    "bfloat16-rest": of((101, 13), nn.init.normal_, torch.bfloat16),
    "float64": of((101, 13), nn.init.normal_, torch.float64),
    "float64-uniform": of((101, 13), nn.init.uniform_, torch.float64),
    "bernoulli": of((101, 13), lambda weight: weight.data.bernoulli_(0.5)),
    "by-columns": of((101, 13), lambda weight: nn.init.normal_(weight.data.t())),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_generator_goes_on_as_if_weights_were_drawn(make):
    """GIVEN a seed and a model, THEN the numbers after it are those without a virtual GPU; nothing is to be said."""
    torch.manual_seed(3)
    make()
    expected = torch.randint(1000, (20,)).tolist()
    with h100() as gpu:
        torch.manual_seed(3)
        make()
        drawn = torch.randint(1000, (20,)).tolist()

    assert drawn == expected
    assert "draws" not in slugs(gpu)


def test_a_generator_of_the_script_goes_on_instead():
    """The one that a draw was given, and not the global one."""

    def draw():
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(1)
        Drawn((300, 10), lambda weight: nn.init.normal_(weight, generator=generator))
        return torch.rand(2, generator=generator).tolist(), torch.rand(2).tolist()

    expected = draw()
    with h100():
        assert draw() == expected


def test_too_many_are_not_passed_by(monkeypatch):
    """Near miss: a model of more weights than that is worth, of which the report says so."""
    monkeypatch.setattr(skipped_draws, "MAX_NUMBERS", 1000)
    with h100() as gpu:
        nn.Linear(100, 100)
        torch.rand(2)

    assert "draws" in slugs(gpu)


def test_weights_that_are_drawn_until_they_fit_are_not_passed_by():
    """Near miss: how often that is depends on the numbers, which nobody draws."""

    def again(weight):
        nn.init.normal_(weight)
        while (weight.abs() > 3).any():
            nn.init.normal_(weight)

    with h100() as gpu:
        Drawn((30, 10), again)
        torch.rand(2)

    assert "draws" in slugs(gpu)


def test_what_the_card_draws_is_not_the_hosts():
    """Near miss: weights that are made on the card leave the generator of the host alone."""
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    with h100():
        torch.manual_seed(3)
        nn.Linear(100, 100, device="cuda")
        assert torch.rand(2).tolist() == expected


UNSEEDED = """\
import random

import numpy
import torch

torch.empty(1, device="cuda")
print(random.randint(1, 10**6), numpy.random.randint(10**6), int(torch.randint(10**6, ())))
"""


def test_a_script_that_seeds_nothing_begins_at_a_seed(tmp_path):
    """GIVEN lengths by chance, THEN the same command gives the same answer each time."""
    (tmp_path / "unseeded.py").write_text(UNSEEDED)
    with seeded(0):
        expected = [random.randint(1, 10**6), numpy.random.randint(10**6), int(torch.randint(10**6, ()))]

    printed = peaksight("run", "--gpu", "t4", "--steps", "0", "unseeded.py", cwd=tmp_path).stdout

    assert printed.splitlines()[0].split() == [str(number) for number in expected]
