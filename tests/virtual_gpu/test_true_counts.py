"""How many elements of a mask can be true where its values are unknown."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peaksight.virtual_gpu.tensors.true_counts import COMBINATIONS, WRITES, most_true

from .cards import slugs

pytestmark = pytest.mark.torch


def drawn(num_positions, num_items=1000):
    """A mask with `num_positions` unknown positions of `num_items` set."""
    mask = torch.zeros(num_items, dtype=torch.uint8, device="cuda")
    mask[torch.randperm(num_items, device="cuda")[:num_positions]] = 1
    return mask


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: drawn(30), 30),
        (lambda: drawn(30) | drawn(12), 42),
        (lambda: drawn(30).bool() & drawn(12).bool(), 12),
        (lambda: drawn(30) * (torch.randn(1000, device="cuda") > 0), 30),
        (lambda: drawn(30)[:, None] * torch.randn(1, 4, device="cuda"), 120),
        (lambda: drawn(30).mul_(2), 30),
        (lambda: torch.cat([drawn(30), drawn(12)]), 42),
        (lambda: torch.stack([drawn(30), drawn(12)])[0], 42),
        (lambda: drawn(30).to(torch.bool).view(10, 100), 30),
        (lambda: drawn(30)[:20], 20),
        (lambda: drawn(30) != 0, 30),
        (lambda: drawn(30) == 0, 1000),
        (lambda: torch.zeros(8, 50, device="cuda").scatter_(1, torch.randn(8, 50, device="cuda").topk(3)[1], 1.0), 24),
        (lambda: drawn(900) | drawn(900), 1000),
    ],
)
def test_no_more_than_were_set(virtual_gpu, make, expected):
    """The upper bound is taken for the positions, and noted."""
    assert make().nonzero().shape[0] == expected
    assert "shapes" in slugs(virtual_gpu)


def test_a_write_that_is_not_followed(virtual_gpu):
    """Then as many may be true as there are, also where a view is written to."""
    mask, other = drawn(30), drawn(30)
    mask.copy_(torch.randn(1000, device="cuda") > 0)
    other[:500].copy_(torch.randn(500, device="cuda") > 0)
    assert (mask.nonzero().shape[0], other.nonzero().shape[0]) == (1000, 1000)


def test_only_masks_are_counted(virtual_gpu):
    """What is moved or joined without a mask is left alone, of whatever type."""
    weight = torch.ones(4, 16).to(torch.float8_e4m3fn).to("cuda")
    joined = torch.cat([drawn(1000), torch.ones(8, device="cuda")])

    assert (weight.dtype, joined.nonzero().shape[0]) == (torch.float8_e4m3fn, 1008)


SHAPES = st.sampled_from([(12,), (3, 4), (2, 3, 2)])


@settings(max_examples=60)
@given(shape=SHAPES, seed=st.integers(0, 1 << 16), keeps_first=st.booleans())
def test_never_fewer_than_there_are(shape, seed, keeps_first):
    """On the host, where the values are known, the rules are upper bounds of what the operators give."""
    generator = torch.Generator().manual_seed(seed)
    mask, other = (torch.rand(shape, generator=generator) > 0.7 for _ in range(2))
    index = torch.randint(0, shape[-1], (3,), generator=generator)
    indices = [None] * (len(shape) - 1) + [index] if keeps_first else [other]
    true = torch.tensor(True)
    aten = torch.ops.aten
    calls = [
        (aten.index_put.default, (mask, indices, true)),
        (aten.cat.default, ([mask, other],)),
        (aten.bitwise_or.Tensor, (mask, other)),
        (aten.bitwise_and.Tensor, (mask, other)),
        (aten.gt.Scalar, (mask.int(), 0)),
        (aten.mul.Tensor, (mask.int(), other)),
        (aten.mul.Tensor, (mask[..., :1], other.int())),
    ]
    for func, args in calls:
        assert (WRITES | COMBINATIONS)[func](*args) >= most_true(func(*args)), func
