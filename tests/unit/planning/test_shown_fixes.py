"""Fixes that are shown and not applied: GIVEN what a run held THEN they say how much would go, or nothing."""

import ast
from types import SimpleNamespace

import pytest

from peaksight.planning import decomposition
from peaksight.planning.fixes import labelled_positions, low_precision_state, sharding
from peaksight.planning.script_text import ScriptText
from peaksight.records import Basis, Fix, ModuleFact, OptimizerFact
from peaksight.records.findings import Effect, Finding
from peaksight.units import GIB
from tests.helpers import allocation_of

_COMMAND = SimpleNamespace(target="none.py")


def situation_of(*, findings=(), rows=(), batch_size=None, modules=(), is_sharded=False, **about):
    """With a DataLoader that gives each step a batch of `batch_size` samples, if there is one."""
    batch = SimpleNamespace(loader=0, step=1, batch_size=batch_size, at="train.py:1", shapes="")
    capture = {
        "peak_allocated_bytes": 10 * GIB,
        "world_size": 1,
        "modules": [ModuleFact(module=path, parameter_bytes=1, frozen_bytes=0) for path in modules],
        "steps": [SimpleNamespace(step=1, complete=True)],
        "batches": [batch] if batch_size else [],
        "backwards": [],
        "allocations": (),
        "labels": [],
        "passes": [],
    }
    report = SimpleNamespace(findings=findings)
    return SimpleNamespace(
        capture=SimpleNamespace(**capture | about),
        report=report,
        optimizers=rows,
        command=_COMMAND,
        is_sharded=is_sharded,
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


@pytest.fixture
def text(monkeypatch):
    """What the script says, which the test may change."""
    words = []
    trees = lambda situation: ScriptText({"train.py": ast.parse("\n".join(words))})  # noqa: E731
    monkeypatch.setattr(sharding, "text_of_script", trees)
    monkeypatch.setattr(decomposition, "text_of_script", trees)
    return words


@pytest.mark.parametrize("batch_size, ranks", [(8, [2, 4, 8]), (12, [2, 4]), (6, [2])])
def test_the_ranks_divide_the_batch(text, batch_size, ranks):
    """The repeated blocks are sharded, and then the model."""
    paths = ["Net.head", "Net.blocks.0.up", "Net.blocks.0.down", "Net.blocks.1.up", "Net.stem.0"]
    proposals = list(sharding.FIX.propose(situation_of(rows=[adam(2)], batch_size=batch_size, modules=paths)))

    assert [each.ranks for each in proposals] == ranks
    (change,) = proposals[0].changes
    assert change.parameters == {"modules": ["Net.blocks.0", "Net.blocks.1", "Net"], "loaders": [0]}


@pytest.mark.parametrize(
    "words, batch_size, why",
    [
        ("from accelerate import Accelerator", 8, "it has its own way to start on several cards"),
        ("rank = os.environ['RANK']; local_rank = 0", 8, "it has its own way to start on several cards"),
        ("", 7, "2 does not divide its batch"),
        ("", None, "no DataLoader gives its batches"),
    ],
)
def test_what_is_not_simulated_on_more_cards(text, words, batch_size, why):
    """It is said why, and how to have it simulated."""
    text.append(words)
    (proposal,) = sharding.FIX.propose(situation_of(rows=[adam(2)], batch_size=batch_size))

    assert proposal.why == why
    assert "--ranks 2" in proposal.advice


@pytest.mark.parametrize("about", [{"world_size": 2}, {"peak_allocated_bytes": 1000 * GIB}, {"rows": []}])
def test_no_sharding(about):
    """Of what is on ranks already, small beside the peak, or not there."""
    assert not list(sharding.FIX.propose(situation_of(**{"rows": [adam(2)]} | about)))


def state_plans(monkeypatch, installed, **about):
    """What the fix proposes where these libraries are installed."""
    monkeypatch.setattr(low_precision_state, "find_spec", lambda name: name in installed or None)
    return list(low_precision_state.FIX.propose(situation_of(rows=[adam(2)], **about)))


@pytest.mark.parametrize("installed", [["bitsandbytes", "torchao"], ["torchao"]])
def test_a_plan_for_each_library_with_an_8_bit_state(monkeypatch, installed):
    """The one without temporaries first."""
    plans = state_plans(monkeypatch, installed)

    assert [each.changes[0].parameters for each in plans] == [{"library": name} for name in installed]
    assert {each.effect for each in plans} == {Effect.NOISE}


@pytest.mark.parametrize(
    "installed, is_sharded, why", [([], False, "neither of bitsandbytes"), (["torchao"], True, "is sharded")]
)
def test_no_plan_with_an_8_bit_state(monkeypatch, installed, is_sharded, why):
    """What would go is said nevertheless."""
    (proposal,) = state_plans(monkeypatch, installed, is_sharded=is_sharded)

    assert why in proposal.why
    assert "about 3.00 GiB of state would go" in proposal.why
