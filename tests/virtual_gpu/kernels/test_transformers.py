"""The fast paths of nn.MultiheadAttention and nn.TransformerEncoder, against an H200."""

import pytest
import torch
from torch import nn

from ..cards import card_of, events_on, slugs

pytestmark = pytest.mark.torch

B, T, D, HEADS = 8, 128, 256, 4
WORDS = 7 * 100 + 50


@pytest.fixture
def h200():
    """An H200 on which cuBLAS has its workspaces."""
    with card_of("h200") as gpu:
        for dtype in (torch.float32, torch.float16):
            words = torch.ones(2, 8, 8, device="cuda", dtype=dtype)
            nn.Linear(8, 8).to("cuda", dtype)(words)
        yield gpu


def padding():
    """True where a word is padding."""
    mask = torch.zeros(B, T, dtype=torch.bool)
    mask[:, 100:] = True
    mask[1, 50:] = True
    return mask.cuda()


def events_of(gpu, module, dtype, *args, **kwargs):
    """What evaluating `module` on one batch takes and gives back."""
    module = module.to("cuda", dtype).eval()
    source = torch.randn(B, T, D, device="cuda", dtype=dtype)
    with events_on(gpu) as events, torch.no_grad():
        out = module(*[source] * (3 if isinstance(module, nn.MultiheadAttention) else 1), *args, **kwargs)
    assert out is not None
    return events


def encoder_layer(**options):
    """The layer of the measured encoder."""
    return nn.TransformerEncoderLayer(D, HEADS, 1024, batch_first=True, **options)


X = B * T * D * 4
SCORES = B * HEADS * T * T * 4
NORM = [X, 4096, 4096, -4096, -4096]
ATTENTION = [3 * X, X, X, -X, -3 * X]
MASKED = [3 * X, 3 * X, -3 * X, SCORES, 1024, SCORES, -SCORES, -1024]


@pytest.mark.parametrize(
    ("weights", "masked", "expected"),
    [
        (False, False, ATTENTION),
        (True, False, [3 * X, 3 * X, -3 * X, SCORES, X, X, -X, SCORES // HEADS, -SCORES, -3 * X]),
        (False, True, [4096, *MASKED, -SCORES, X, X, -X, -3 * X, -4096]),
        (True, True, [4096, *MASKED, X, X, -X, SCORES // HEADS, -SCORES, -3 * X, -4096]),
    ],
)
def test_multihead_attention(h200, weights, masked, expected):
    """One fused attention, or scores: measured on an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""
    attend = nn.MultiheadAttention(D, HEADS, batch_first=True)
    options = {"key_padding_mask": padding()} if masked else {}

    assert expected == events_of(h200, attend, torch.float32, need_weights=weights, **options)


def test_half_precision(h200):
    """In half precision cuDNN attends."""
    half = X // 2
    attend = nn.MultiheadAttention(D, HEADS, batch_first=True)

    expected = [3 * half, 8, 8, half, 256, -256, -8, -8, half, -half, -3 * half]
    assert expected == events_of(h200, attend, torch.float16, need_weights=False)


@pytest.mark.parametrize(
    ("norm_first", "expected"),
    [
        (False, [*ATTENTION, *NORM, -X, 4 * X, X, -4 * X, *NORM, -X, -X]),
        (True, [*NORM, *ATTENTION, -X, *NORM, 4 * X, X, -4 * X, -X, -X]),
    ],
)
def test_encoder_layer(h200, norm_first, expected):
    """A layer is one operator: its sums are in place, its first product and the activation one kernel."""
    assert expected == events_of(h200, encoder_layer(norm_first=norm_first), torch.float32)


def test_padded_batch(h200):
    """With a padding mask the encoder computes the words alone, and pads them at the end."""
    encoder = nn.TransformerEncoder(encoder_layer(), 1)
    events = events_of(h200, encoder, torch.float32, src_key_padding_mask=padding())

    words = WORDS * D * 4
    layer = [3 * words, words, words, -words, -3 * words, words, 3000, 3000, -3000, -3000, -words,
             4 * words, words, -4 * words, words, 3000, 3000, -3000, -3000, -words, -words]  # fmt: skip
    assert [words, *layer, -words, X, -words] == [size for size in events if abs(size) >= 3000 and abs(size) != 4096]
    assert "nested-tensors" in slugs(h200)


def test_packing_bfloat16(h200):
    """In bfloat16 the words are selected by an index, the largest block of the measured run: 24 bytes an element."""
    encoder = nn.TransformerEncoder(encoder_layer(), 1)
    events = events_of(h200, encoder, torch.bfloat16, src_key_padding_mask=padding())

    start = events.index(B * T * D)
    assert [B * T * D, 24 * WORDS * D, 2 * WORDS * D, -24 * WORDS * D, -B * T * D] == events[start : start + 5]


def test_an_unknown_mask_keeps_every_word(h200):
    """Padding that the card alone knows is taken to be at the end, and to be nowhere."""
    encoder = nn.TransformerEncoder(encoder_layer(), 1)
    mask = torch.rand(B, T, device="cuda") > 0.5

    assert 3 * X in events_of(h200, encoder, torch.float32, src_key_padding_mask=mask)


def test_padding_in_between(h200):
    """A mask that is not left-aligned keeps the padded path."""
    encoder = nn.TransformerEncoder(encoder_layer(), 1)
    mask = torch.zeros(B, T, dtype=torch.bool)
    mask[:, 3] = True

    assert SCORES in events_of(h200, encoder, torch.float32, src_key_padding_mask=mask.cuda())


def test_training_takes_the_steps(h200):
    """With gradients there is no fast path."""
    layer = encoder_layer().cuda()
    with events_on(h200) as events:
        layer(torch.randn(B, T, D, device="cuda")).sum().backward()

    assert events.count(3 * X) > 2
    assert layer.linear1.weight.grad is not None


def test_a_function_mode_of_the_script(h200):
    """`with torch.device(...)` is a function mode: modules then take no fast path on the card either."""
    attend = nn.MultiheadAttention(D, HEADS, batch_first=True)
    with torch.device("cuda"):
        events = events_of(h200, attend, torch.float32, need_weights=False)

    assert events != ATTENTION
