"""Values of large tensors are followed where they repeat, as those of a mask for each head and query."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.repeats import num_kept, once

from .cards import h100, slugs

pytestmark = pytest.mark.torch

WORDS = 2200  # their square is more than is followed one by one
LENGTHS = torch.tensor([700, WORDS])


def padding():
    """True for each word of two texts, on the card."""
    return (torch.arange(WORDS)[None] < LENGTHS[:, None]).to("cuda")


def masked_pairs():
    """Two texts by word by word: whether the latter is one of the text."""
    is_any = torch.arange(WORDS, device="cuda") >= 0
    return is_any[None, :, None] & padding()[:, None, :]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda: bool(masked_pairs().all()), False),
        (lambda: bool(masked_pairs()[1].all()), True),
        (lambda: masked_pairs()[:, 0].sum(1).tolist(), LENGTHS.tolist()),
        (lambda: masked_pairs()[0, 5, 698:702].tolist(), [True, True, False, False]),
        (lambda: torch.where(masked_pairs(), 0.0, -2.0)[:, 3].min(1).values.tolist(), [-2.0, 0.0]),
        (lambda: padding()[:, None].expand(-1, WORDS, -1).logical_not().any().item(), True),
        (lambda: (padding()[:, None].expand(-1, WORDS, -1) | masked_pairs()).any().item(), True),
    ],
)
def test_what_repeats_is_known(virtual_gpu, read, expected):
    """More elements than are followed one by one, whose values are few."""
    assert expected == read()
    assert "values" not in slugs(virtual_gpu)


def test_what_does_not_repeat_is_unknown(virtual_gpu):
    """A causal mask has other values for each query and key: nothing is computed of it."""
    position = torch.arange(WORDS, device="cuda")

    assert known_value(position[:, None] >= position) is None


@pytest.mark.models
def test_a_mask_of_transformers(virtual_gpu):
    """As it is made for an attention that is written out."""
    from transformers import BertConfig
    from transformers.masking_utils import create_bidirectional_mask

    config = BertConfig(attn_implementation="eager")
    mask = create_bidirectional_mask(
        config=config, inputs_embeds=torch.zeros(2, WORDS, 8, device="cuda"), attention_mask=padding().long()
    )

    assert (2, 1, WORDS, WORDS) == tuple(mask.shape)
    assert LENGTHS.tolist() == (mask[:, 0, 0] == 0).sum(1).tolist()


def test_a_write_into_a_part_ends_what_is_known_of_the_whole(virtual_gpu):
    """The elements of the part have places of their own on the card, and the same one here."""
    pairs = masked_pairs()
    first = pairs[:, 0]
    first[~padding()] = True

    assert [WORDS, WORDS] == first.sum(1).tolist()
    assert known_value(pairs) is None


def test_a_write_into_a_part_of_zeros():
    """Zeros are kept once, however many."""
    with h100() as gpu:
        zeros = torch.zeros(1 << 17, device="cuda")
        zeros[3] = 1
        total = zeros.sum().item()

        assert total == 1.0  # a stand-in, for what is not known any more
        assert "values" in slugs(gpu)


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(deadline=None)
@given(sizes=SIZES, data=st.data())
def test_once_is_what_it_was_when_repeated(sizes, data):
    """GIVEN values of which some repeat, THEN one of each, expanded, is all of them, in no more places."""
    repeated = [data.draw(st.booleans()) for _ in sizes]
    kept = torch.randint(0, 2, [1 if repeats else size for size, repeats in zip(sizes, repeated, strict=True)])
    value = kept.expand(sizes)

    assert torch.equal(value, once(value).expand(sizes))
    assert once(value).numel() <= num_kept(value) <= kept.numel()
