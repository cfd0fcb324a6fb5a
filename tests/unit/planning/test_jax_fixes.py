"""What is proposed for a script under JAX, from the facts of its functions."""

import pytest

from helpers import capture_of
from peaksight.gpus import find_card, room_on
from peaksight.planning.answer import proposals_for
from peaksight.planning.jax_words import JAX_WORDS
from peaksight.planning.situation import Situation
from peaksight.records import ScriptCommand, Versions
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import ArgumentFact, Change, JaxProgram, RematFact, ScanFact, WhatIf
from peaksight.records.proposals import Candidate, NotApplied
from peaksight.units import GIB


class Explained:
    """The part of a report that proposals are made of."""

    def __init__(self, *findings):
        self.findings = findings


def program(**facts):
    sizes = dict.fromkeys(("argument_bytes", "constant_bytes", "output_bytes", "aliased_bytes", "temporary_bytes"), 0)
    x = ArgumentFact(path="x", tensor="float32[12, 8]", bytes=384, is_donated=False, is_returned=False,
                     is_changed=False, is_written=False)  # fmt: skip
    return JaxProgram(**{"name": "step", "peak_bytes": GIB, "trains": True, "arguments": (x,), **sizes, **facts})


def proposed(*programs, pool_bytes=10 * GIB, findings=(), **facts):
    situation = Situation(
        command=ScriptCommand(target="train.py", args=()),
        room=room_on(find_card("t4")),
        capture=capture_of(pool_bytes=pool_bytes, programs=programs, **facts),
        report=Explained(*findings),
        limit_bytes=1,
    )
    return proposals_for(situation)


def titles(*programs, **facts):
    return [each.title for each in proposed(*programs, **facts)]


SCAN = ScanFact(at="train.py:9", scope="", length=4, residuals=(("float32[4, 8]", 128),), carry_bytes=8,
                is_checkpointed=False)  # fmt: skip
REMAT = RematFact(at="train.py:7", in_loop=False, prevents_cse=False, recomputes=True)


def test_a_loss_without_a_checkpoint_or_a_scan():
    """A checkpoint around all of it; no policy of what is not there."""
    found = titles(program())

    assert "the loss under jax.checkpoint with dots_saveable" in found
    assert not any(title.startswith("jax.checkpoint with") for title in found)


@pytest.mark.parametrize("facts, num_policies", [({"scans": (SCAN,)}, 3), ({"remats": (REMAT,)}, 4)])
def test_policies_of_what_is_there(facts, num_policies):
    """To save everything is another thing only where something is not saved."""
    found = titles(program(**facts))

    assert num_policies == sum(title.startswith("jax.checkpoint with") for title in found)
    assert not any("the loss under" in title for title in found)


def test_whole_arguments_are_donated():
    """That the facts name leaf by leaf."""
    about = ("state.params['w']", "state.opt[0].mu['w']", "args[1]['ema']")
    (donation,) = [
        each
        for each in proposed(program(what_ifs=(WhatIf(change=Change.DONATE, peak_bytes=1, about=about),)))
        if each.kinds == ("jax-donate",)
    ]

    assert {"program": "step", "arguments": ["state", "args[1]"]} == donation.changes[0].parameters
    assert Effect.BITWISE is donation.effect


def test_several_cards():
    """As many as divide the batch, the batch alone first; its own mesh where it has one, and none of several."""
    found = [title for title in titles(program()) if "cards" in title]

    assert [f"batch{state} over {n} cards" for n in (2, 4) for state in ("", " and state")] == found
    assert "its own mesh over 8 cards" in titles(program(mesh_size=1))
    assert not any("cards" in title for title in titles(program(mesh_size=2)))


def test_several_cards_take_the_compiler():
    """Liveness does not know how a program is divided."""
    versions = Versions(installed="jax 0.10.2", device_rules="liveness")
    (told,) = [each for each in proposed(program(), versions=versions) if isinstance(each, NotApplied)]

    assert ("jax-sharding", "install jax-cuda13-plugin and jax-cuda13-pjrt") == (told.kind, told.advice)


def test_a_larger_pool():
    """Where JAX takes less than the card has."""
    assert "a pool of 95 % of the card" in titles(program())
    assert not any("a pool" in title for title in titles(program(), pool_bytes=room_on(find_card("t4")).usable_bytes))


def test_what_no_change_makes_is_told_with_what_saw_it():
    """The edits that the rules propose, by liveness where that simulated them; not those that are tried."""
    fixes = (
        Fix(kind="stop-gradient", text="Stop it.", effect=Effect.MODEL, saves_bytes=GIB),
        Fix(kind="donate", text="Donate.", effect=Effect.BITWISE, saves_bytes=GIB),
    )
    finding = Finding(rule="jax-x", title="Why", bytes=GIB, evidence=(), fixes=fixes, basis=Basis.COUNTERFACTUAL)
    (told,) = [each for each in proposed(program(), findings=(finding,)) if isinstance(each, NotApplied)]

    assert ("stop-gradient", "Stop it.") == (told.kind, told.advice)
    assert "liveness" in told.why and "1.00 GiB" in told.why


def test_every_change_has_words():
    """What a person writes."""
    what_ifs = [WhatIf(change=change, peak_bytes=1, about=("state['w']",)) for change in Change]
    everything = [
        *proposed(program(what_ifs=tuple(what_ifs), remats=(REMAT,))),
        *proposed(program()),
    ]
    changes = [change for each in everything if isinstance(each, Candidate) for change in each.changes]

    assert set(JAX_WORDS) == {change.kind for change in changes}
    assert all(JAX_WORDS[change.kind](change.parameters) for change in changes)
