"""Operators whose output size depends on values."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ..cards import births_on, requested, slugs

pytestmark = pytest.mark.torch


def on_card(data):
    """`data`, made on the host and moved."""
    return torch.tensor(data).to("cuda")


def unknown(*shape):
    """Positive integers that nobody knows."""
    return torch.randn(shape, device="cuda").long().abs()


DATA = [3, 1, 1, 2]
KNOWN = [
    (lambda: on_card(DATA).unique(), [(3,)]),
    (lambda: on_card(DATA).unique(return_inverse=True, return_counts=True), [(3,), (4,), (3,)]),
    (lambda: on_card(DATA).unique_consecutive(return_counts=True), [(3,), (3,)]),
    (lambda: on_card([[1, 2], [1, 2], [3, 4]]).unique(dim=0, return_counts=True), [(2, 2), (2,)]),
    (lambda: on_card([[1, 1], [2, 2]]).unique(dim=1), [(2, 1)]),
    (lambda: torch.repeat_interleave(on_card(DATA)), [(7,)]),
    (lambda: torch.repeat_interleave(torch.ones(4, 5, device="cuda"), on_card(DATA), dim=0), [(7, 5)]),
    (lambda: torch.bincount(on_card(DATA)), [(4,)]),
    (lambda: torch.bincount(on_card(DATA), minlength=9), [(9,)]),
    (lambda: F.one_hot(on_card(DATA)), [(4, 4)]),
    (lambda: torch.argwhere(on_card(DATA) > 1), [(2, 1)]),
    (lambda: torch.where(on_card(DATA) > 1), [(2,)]),
]
UNKNOWN = [
    (lambda: unknown(4).unique(return_inverse=True, return_counts=True), [(4,), (4,), (4,)]),
    (lambda: unknown(4).unique_consecutive(), [(4,)]),
    (lambda: unknown(3, 2).unique(dim=0), [(3, 2)]),
    (lambda: torch.repeat_interleave(torch.ones(4, 5, device="cuda"), unknown(4), dim=0), [(4, 5)]),
    (lambda: torch.bincount(unknown(4), minlength=9), [(9,)]),
    (lambda: torch.argwhere(unknown(4) > 1), [(4, 1)]),
]


def shapes(call):
    """The shapes of what `call()` returns."""
    out = call()
    return [tuple(tensor.shape) for tensor in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize(("call", "expected"), KNOWN)
def test_known(virtual_gpu, call, expected):
    """Of known values, the sizes are exact and nothing is noted."""
    assert expected == shapes(call)
    assert "shapes" not in slugs(virtual_gpu)


@pytest.mark.parametrize(("call", "expected"), UNKNOWN)
def test_unknown(virtual_gpu, call, expected):
    """Of unknown values, the size is that of the input, and noted."""
    assert expected == shapes(call)
    assert "shapes" in slugs(virtual_gpu)


@pytest.mark.parametrize("make_lengths", [torch.tensor, lambda lengths: torch.tensor(lengths).cuda(), tuple])
def test_ctc_loss(virtual_gpu, make_lengths):
    """CTC keeps 2 * 5 + 1 states for each of 20 times and 2 samples, where the longest target has 5 labels."""
    log_probs = torch.randn(20, 2, 6, device="cuda", requires_grad=True).log_softmax(-1)
    targets = torch.ones(2, 7, dtype=torch.int64, device="cuda")
    with births_on(virtual_gpu) as births:
        loss = F.ctc_loss(log_probs, targets, make_lengths([20, 20]), make_lengths([5, 3]), reduction="none")
    loss.sum().backward()

    assert 2 * 20 * (2 * 5 + 1) * 4 in requested(births)


def test_recurrent_layers_of_packed_sequences(virtual_gpu):
    """A packed LSTM runs forward and backward over its real lengths."""
    layer = nn.LSTM(4, 8, batch_first=True).cuda()
    batch = torch.randn(3, 5, 4, device="cuda", requires_grad=True)
    packed = nn.utils.rnn.pack_padded_sequence(batch, [5, 2, 1], batch_first=True)
    out, _ = layer(packed)
    out.data.sum().backward()

    assert (8, 8) == tuple(out.data.shape)
    assert batch.grad.is_cuda
