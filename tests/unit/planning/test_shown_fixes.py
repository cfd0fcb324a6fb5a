"""Fixes that are shown and not applied: GIVEN what a run held THEN they say how much would go, or nothing."""

from types import SimpleNamespace

import pytest

from peaksight.planning.fixes import labelled_positions, sharding
from peaksight.records import Basis, Fix, OptimizerFact
from peaksight.records.findings import Effect, Finding
from peaksight.units import GIB
from tests.helpers import allocation_of

_COMMAND = SimpleNamespace(target="none.py")


def situation_of(*, peak_bytes=10 * GIB, findings=(), rows=(), excess_bytes=0, world_size=1, **capture):
    capture = {"peak_allocated_bytes": peak_bytes, "world_size": world_size, "allocations": ()} | capture
    report = SimpleNamespace(findings=findings)
    return SimpleNamespace(
        capture=SimpleNamespace(**capture), report=report, optimizers=rows, excess_bytes=excess_bytes, command=_COMMAND
    )


def logits(saves_bytes):
    """What the rule on logits found."""
    fix = Fix(kind="labelled-positions", text="", effect=Effect.ROUNDING, saves_bytes=saves_bytes)
    return Finding(rule="logits-unsupervised", title="", bytes=1, evidence=(), fixes=(fix,), basis=Basis.PATTERN)


def test_logits_of_labelled_positions_where_the_library_has_the_loss():
    """GIVEN a model of transformers that is called with labels, THEN a plan makes it so."""
    shifted = allocation_of(GIB, born=1, grad_enabled=True, library="transformers/loss/loss_utils.py:57")
    situation = situation_of(findings=[logits(3 * GIB)], allocations=(shifted,))

    (candidate,) = labelled_positions.FIX.propose(situation)

    assert [change.kind for change in candidate.changes] == ["labelled-positions"]


def adam(gib, *, frozen=False):
    about = {"optimizer": 0, "kind": "Adam", "how": "fused", "dtype": "float32", "state_dtype": "float32", "count": 1}
    return OptimizerFact(**about, frozen=frozen, parameter_bytes=gib * GIB, state_bytes=0 if frozen else 2 * gib * GIB)


@pytest.mark.parametrize("findings, shown", [([logits(3 * GIB)], True), ([logits(1)], False), ((), False)])
def test_logits_of_labelled_positions(findings, shown):
    """Where the labels of the run say that many positions have none."""
    proposals = list(labelled_positions.FIX.propose(situation_of(findings=findings)))

    assert ["3.00 GiB would go" in each.why for each in proposals] == ([True] if shown else [])


@pytest.mark.parametrize("excess, ranks, left", [(1, 2, "4.00 GiB"), (5, 4, "2.00 GiB"), (9, 8, "1.00 GiB")])
def test_as_many_ranks_as_it_takes(excess, ranks, left):
    """8 GiB of parameters, gradients and state; with the most ranks it may still be too little."""
    (proposal,) = sharding.FIX.propose(situation_of(rows=[adam(2)], excess_bytes=excess * GIB))

    assert f"With {ranks} each would hold {left} of the 8.00 GiB" in proposal.why


@pytest.mark.parametrize("about", [{"rows": [adam(2)], "world_size": 2}, {"rows": [adam(2, frozen=True)]}, {}])
def test_no_sharding(about):
    """Of what is on ranks already, small beside the peak, or not there."""
    assert not list(sharding.FIX.propose(situation_of(**about)))
