"""How large samples and batches are."""

import dataclasses
from collections import UserDict

import pytest
import torch
from torch.utils.data import default_collate

from peaksight.virtual_gpu.training.extents import NOTHING, Extent, extent_of, largest_places

pytestmark = pytest.mark.torch


@dataclasses.dataclass
class Utterance:
    """A sample of its own class."""

    sound: torch.Tensor
    words: list


@pytest.mark.parametrize(
    ("sample", "length"),
    [
        (torch.ones(2, 3), 6),
        ([1, 2, 3], 3),
        (([1, 2], [3]), 3),
        ({"input_ids": [1, 2], "text": "abc", "label": 0}, 6),
        (UserDict(input_ids=torch.ones(4)), 4),
        (Utterance(torch.ones(5), ["a", "bc"]), 8),
        (default_collate([torch.ones(3)]).numpy(), 3),
        (None, 1),
    ],
)
def test_the_elements_of_a_sample(sample, length):
    """All elements of tensors, arrays, lists and texts."""
    assert length == extent_of(sample).elements


def test_the_size_of_an_image():
    """Width times height."""
    image = pytest.importorskip("PIL.Image")

    assert Extent(12, 4) == extent_of(image.new("RGB", (3, 4)))


@pytest.mark.parametrize(
    ("sample", "longest"),
    [(torch.ones(2, 3), 3), (([1, 2], "abcd"), 4), ((5, torch.ones(2)), 2), (7, 0), ([], 0)],
)
def test_the_longest_side_of_a_sample(sample, longest):
    """Of any tensor, list of numbers or text in it."""
    assert longest == extent_of(sample).longest


def test_the_largest_places():
    """The one of the most elements and the one with the longest side, where they have more than what was seen."""
    extents = [Extent(8, 2), Extent(4, 4), Extent(6, 3)]

    assert largest_places(extents, NOTHING) == [0, 1]
    assert largest_places(extents, Extent(8, 3)) == [1]
    assert largest_places(extents, Extent(8, 4)) == largest_places([], NOTHING) == []
