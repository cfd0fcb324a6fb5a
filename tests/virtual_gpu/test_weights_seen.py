"""Who reads the weights of attention, beside the product with the values."""

import pytest
import torch
from torch import nn

from .cards import h100

pytestmark = pytest.mark.torch


def attend(q, v, dropout=0.0):
    weights = nn.functional.dropout((q @ q.transpose(-2, -1)).softmax(-1), dropout)
    return weights @ v, weights


def facts_of(use, **kwargs):
    """`(read_share, line of the reader)` of each softmax, in a step whose loss is what `use` makes of an attention."""
    with h100() as gpu:
        q = torch.randn(2, 4, 8, 16, device="cuda", requires_grad=True)
        mixed, weights = attend(q, q, **kwargs)
        use(mixed, weights).backward()
    return [(fact.read_share, bool(fact.reader)) for fact in gpu.witness.weights.facts_on(0)]


UNREAD = {
    "dropped": lambda mixed, weights: mixed.sum(),
    "detached": lambda mixed, weights: (weights.detach(), mixed.sum())[1],
    "a mean that nobody reads": lambda mixed, weights: (weights.mean(1), mixed.sum())[1],
    "a view": lambda mixed, weights: (weights[:, 0].transpose(-2, -1), mixed.sum())[1],
    "a cast": lambda mixed, weights: (weights.half().float(), mixed.sum())[1],
}
READ = {
    "in the loss": (lambda mixed, weights: mixed.sum() + weights.sum(), 1.0),
    "some of them": (lambda mixed, weights: mixed.sum() + weights[:1].square().mean(), 0.5),
    "as indices": (lambda mixed, weights: mixed.flatten()[weights.flatten().topk(3).indices].sum(), 1.0),
    "on the host": (lambda mixed, weights: mixed.sum() * weights.mean().item(), 1.0),
    "as the loss": (lambda mixed, weights: weights.square().mean(), 1.0),
}


@pytest.mark.parametrize("use", UNREAD)
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_nobody_reads(use, dropout):
    assert [(0.0, False)] == facts_of(UNREAD[use], dropout=dropout)


@pytest.mark.parametrize("use", READ)
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_something_reads(use, dropout):
    assert [(READ[use][1], True)] == facts_of(READ[use][0], dropout=dropout)


@pytest.mark.parametrize("is_used", [False, True])
def test_a_module_of_torch_that_returns_its_weights(is_used):
    """`nn.MultiheadAttention` makes means over its heads unless it is told not to."""
    with h100() as gpu:
        attention = nn.MultiheadAttention(32, 4, batch_first=True).cuda()
        x = torch.randn(2, 8, 32, device="cuda")
        out, weights = attention(x, x, x)
        (out.mean() + weights.mean() if is_used else out.mean()).backward()

    assert [float(is_used)] == [fact.read_share for fact in gpu.witness.weights.facts_on(0)]


def test_the_lines_that_lead_to_each():
    """Two ways through one line are told apart."""
    with h100() as gpu:
        q = torch.randn(2, 4, 8, 16, device="cuda", requires_grad=True)
        first, _ = attend(q, q)
        second, weights = attend(q, q)
        (first + second + weights.sum()).sum().backward()
    unread, read = gpu.witness.weights.facts_on(0)

    assert (unread.read_share, read.read_share) == (0.0, 1.0)
    assert unread.callers.split(" < ")[0] == read.callers.split(" < ")[0]
    assert unread.callers.split(" < ")[1] != read.callers.split(" < ")[1]


def test_a_recomputed_softmax_has_no_row():
    """What is read of the first is not asked of the second."""
    with h100() as gpu:
        q = torch.randn(2, 4, 8, 16, device="cuda", requires_grad=True)
        mixed, weights = torch.utils.checkpoint.checkpoint(attend, q, q, use_reentrant=False)
        (mixed.sum() + weights.sum()).backward()

    assert [1.0] == [fact.read_share for fact in gpu.witness.weights.facts_on(0)]
