"""GIVEN calls of torch.utils.checkpoint, THEN each is known with its inputs and with what a backward ran again."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from .cards import h100

pytestmark = pytest.mark.torch


def seen(run):
    """The facts of the calls that `run(model)` makes; the model has three layers."""
    with h100() as gpu:
        run(nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(3))).cuda())
    return gpu.witness.checkpoints.facts_on(0)


def test_a_call_has_its_ticks_and_those_of_what_ran_again():
    def run(model):
        x = torch.ones(4, 8, device="cuda")
        checkpoint(model, x, use_reentrant=False).sum().backward()

    (fact,) = seen(run)
    assert (fact.module, fact.reentrant, fact.input_needs_grad, fact.grad_enabled) == ("Sequential", False, False, True)
    assert 0 < fact.first_tick < fact.last_tick < fact.recomputed_from < fact.recomputed_to


@pytest.mark.parametrize("needs_grad", [True, False])
def test_a_reentrant_call_runs_again_only_where_an_input_needs_a_gradient(needs_grad):
    def run(model):
        x = torch.ones(4, 8, device="cuda", requires_grad=needs_grad)
        out = checkpoint(model, x, use_reentrant=True)
        if out.requires_grad:
            out.sum().backward()

    (fact,) = seen(run)
    assert fact.reentrant
    assert fact.input_needs_grad is needs_grad
    assert bool(fact.recomputed_to) is needs_grad


def test_what_ends_in_checkpoint_is_seen_too():
    facts = seen(lambda model: checkpoint_sequential(model, 3, torch.ones(4, 8, device="cuda"), use_reentrant=False))
    assert len(facts) == 2  # the last segment is not checkpointed
    assert not any(fact.recomputed_to for fact in facts)


def test_without_autograd_nothing_is_checkpointed():
    def run(model):
        with torch.no_grad():
            checkpoint(model, torch.ones(4, 8, device="cuda"), use_reentrant=False)

    (fact,) = seen(run)
    assert not fact.grad_enabled


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_runs_again_has_the_line_of_its_call(reentrant):
    """Not that of `backward()`, which says nothing of it; nor has a gradient of it."""
    with h100() as gpu:
        model, x = nn.Sequential(nn.Linear(8, 8), nn.GELU()).cuda(), torch.ones(4, 8, device="cuda", requires_grad=True)
        loss = checkpoint(model, x, use_reentrant=reentrant).sum()
        loss.backward()
    (fact,) = gpu.witness.checkpoints.facts_on(0)
    again = [birth for birth in gpu.ledger.births if fact.recomputed_from < birth.born <= fact.recomputed_to]
    gradients = [birth for birth in gpu.ledger.births if birth.born > fact.recomputed_to and birth.module]

    assert again and gradients
    assert {birth.lines.source for birth in (*again, *gradients)} == {fact.at}
