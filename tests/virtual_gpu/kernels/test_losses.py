"""Losses, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch
import torch.nn.functional as F

from ..cards import births_on, events_on, requested

pytestmark = pytest.mark.torch

VALUES = 2048 * 500 * 4


def pair():
    """Logits that are part of a graph, and targets, 2048 rows of 500."""
    logits = torch.randn(2048, 500, device="cuda", requires_grad=True)
    return logits, torch.randn(2048, 500, device="cuda")


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss])
def test_a_mean_is_written_into_an_output_of_all_values(virtual_gpu, loss):
    """The loss keeps the bytes of its input; the values are a second block of that size."""
    inputs = pair()
    with events_on(virtual_gpu) as events:
        kept = loss(*inputs)

    assert [VALUES, VALUES, 500, 4, -4, -500, -VALUES] == events
    assert () == tuple(kept.shape)


def test_huber_loss(virtual_gpu):
    """Its values are freed after their mean."""
    inputs = pair()
    with events_on(virtual_gpu) as events:
        kept = F.huber_loss(*inputs)

    assert [VALUES, 4, 500, 4, -4, -500, -VALUES] == events
    assert kept.requires_grad


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss])
def test_without_a_reduction_the_values_are_the_loss(virtual_gpu, loss):
    """One block, as large as the input."""
    inputs = pair()
    with births_on(virtual_gpu) as births:
        kept = loss(*inputs, reduction="none")

    assert [VALUES] == requested(births)
    assert (2048, 500) == tuple(kept.shape)


def test_binary_cross_entropy(virtual_gpu):
    """The mean is copied into the tensor of all values, which stays."""
    logits, target = pair()
    probabilities = logits.sigmoid()
    with events_on(virtual_gpu) as events:
        kept = F.binary_cross_entropy(probabilities, target)

    assert [VALUES, 4, 500, 4, -4, -500, -4] == events
    assert kept.requires_grad


def test_binary_cross_entropy_with_logits(virtual_gpu):
    """Two blocks of the input's size in the forward; the gradient is computed in place."""
    logits, target = pair()
    with events_on(virtual_gpu) as forward:
        loss = F.binary_cross_entropy_with_logits(logits, target)
    gradient = torch.ones_like(loss)
    with events_on(virtual_gpu) as backward:
        loss.backward(gradient)

    assert [VALUES, VALUES, 4, 500, 4, -4, -500, -VALUES, -VALUES] == forward
    assert [VALUES] == backward


def test_soft_margin_loss(virtual_gpu):
    """Steps with out=: the loss keeps the bytes of its input."""
    logits, target = pair()
    with events_on(virtual_gpu) as forward:
        loss = F.soft_margin_loss(logits, target)
    gradient = torch.ones_like(loss)
    with events_on(virtual_gpu) as backward:
        loss.backward(gradient)

    assert [VALUES, 4, 500, 4, -4, -500, -4] == forward
    assert [VALUES, VALUES, VALUES, -VALUES, -VALUES, VALUES, -VALUES] == backward


def test_multi_margin_loss(virtual_gpu):
    """One loss a row beside the mean."""
    logits, _ = pair()
    labels = torch.zeros(2048, dtype=torch.int64, device="cuda")
    with events_on(virtual_gpu) as events:
        F.multi_margin_loss(logits, labels).backward()

    assert [4, 8192, -8192] == events[:3]
    assert logits.grad.shape == logits.shape


def test_multilabel_margin_loss(virtual_gpu):
    """What is a target of each row, the loss, and one loss a row: (10, 5)."""
    logits = torch.randn(10, 5, device="cuda", requires_grad=True)
    with births_on(virtual_gpu) as births:
        F.multilabel_margin_loss(logits, torch.zeros(10, 5, dtype=torch.int64, device="cuda")).backward()

    assert [4, 40, 200] == sorted(requested(births)[1:4])


def test_ctc_loss(virtual_gpu):
    """Three vectors of lengths beside the forward variables, and as many backward variables for the gradient."""
    log_probs = torch.randn(50, 16, 20, device="cuda", requires_grad=True)
    targets = torch.ones(16, 30, dtype=torch.int64, device="cuda")
    lengths = torch.full((16,), 50), torch.full((16,), 29)
    with events_on(virtual_gpu) as forward:
        loss = F.ctc_loss(log_probs, targets, *lengths, reduction="none")
    gradient = torch.ones_like(loss)
    with events_on(virtual_gpu) as backward:
        loss.backward(gradient)

    assert [128, 128, 128, 188800, 64, -128, -128, -128] == forward
    assert [128, 128, 128, 188800, 64000, -188800, -128, -128, -128, -188800] == backward


def test_gradient_of_transposed_log_probabilities(virtual_gpu):
    """CTC's gradient lies row by row, so the softmax below copies it: an H100 took 12,736,000 bytes four times more."""
    logits = torch.randn(16, 199, 1000, device="cuda", requires_grad=True)
    targets, lengths = torch.ones(16, 60, dtype=torch.int64), torch.full((16,), 199)
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    loss = F.ctc_loss(log_probs, targets.cuda(), lengths, torch.full((16,), 60))
    with births_on(virtual_gpu) as births:
        loss.backward()

    assert requested(births).count(logits.nbytes) == 3
