"""Caches of keys and values, hidden states and attentions that the output of a model keeps."""

import pytest

from peaksight.diagnosis.diagnose import examine
from peaksight.records import Hold, Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

BACKWARD = {"phase": Phase.BACKWARD, "grad_enabled": False}


def hold(born, name, tick=4):
    """A name of the block born at `born`, seen before a backward pass."""
    return Hold(
        tick=tick,
        step=1,
        phase=Phase.FORWARD,
        born=born,
        name=name,
        where="train.py:main",
        shown_bytes=0,
        by_graph=False,
    )


def run(name, *, saved=True, original_saved=False, died=9):
    """Two steps: each makes a block, a copy of it that has `name`, and in the backward two blocks of later nodes.

    The first of these lies before the copy's node has run, the second behind it.
    """
    allocations = []
    for step, first in ((1, 1), (2, 11)):
        allocations += [
            allocation_of(
                3 * MIB, born=first, died=first + (8 if original_saved else 2), step=step,
                saved_by="MmBackward0", backward=step if original_saved else 0, node=3 if original_saved else 0,
            ),
            allocation_of(
                4 * MIB, born=first + 1, died=first + died, step=step, copy_of=first,
                saved_by="MmBackward0", backward=step if saved else 0, node=5 if saved else 0,
            ),
            allocation_of(2 * MIB, born=first + 4, died=first + 6, step=step, node=7, **BACKWARD),
            allocation_of(5 * MIB, born=first + 5, died=first + 7, step=step, node=2, **BACKWARD),
        ]  # fmt: skip
    steps = tuple(step_of(step, first, first + 9, (first + 3,)) for step, first in ((1, 1), (2, 11)))
    holds = (hold(2, name), hold(12, name))
    return capture_of(*allocations, steps=steps, observed=True, holds=holds)


def answer(capture, rule):
    """What `rule` finds in `capture`, or why it found nothing."""
    findings, examined = examine(capture)
    found = [each for each in findings if each.rule == rule] or [each for each in examined if each.rule == rule]
    return found[0]


def test_a_cache_that_outlives_its_node_costs_what_it_holds_then():
    """At the peak, a block of an earlier node, the cache is not needed any more: it is 4 of 11 MiB."""
    found = answer(run("outputs.past_key_values.layers[0].keys"), "kv-cache-in-training")

    assert (found.bytes, found.without_effect, found.at) == (4 * MIB, False, "train.py:1")
    assert "`outputs.past_key_values.layers[0].keys` in train.py:main" in found.evidence[0]


def test_a_cache_that_copies_what_is_saved_costs_its_copies():
    """GIVEN an original that the backward pass needs too, THEN without the cache there is no copy at any time."""
    found = answer(run("outputs.past_key_values.layers[0].keys", original_saved=True), "kv-cache-in-training")

    assert found.bytes == 4 * MIB
    assert "2 of them copies of what is saved anyway" in found.evidence[0]


def test_a_cache_that_goes_with_its_node_has_no_effect():
    """GIVEN that it dies before the block of the peak is born, THEN turning it off changes nothing."""
    found = answer(run("outputs.past_key_values.layers[0].keys", died=5), "kv-cache-in-training")

    assert (found.bytes, found.without_effect, found.fixes) == (0, True, ())


@pytest.mark.parametrize("rule", ["kv-cache-in-training", "outputs-kept"])
def test_other_names_are_neither(rule):
    """An output by any other name."""
    assert answer(run("outputs.logits"), rule).outcome is Outcome.REFUTED


@pytest.mark.parametrize("name", ["outputs.hidden_states[3]", "out.encoder_attentions[0]"])
def test_outputs_of_every_layer(name):
    """They hold 4 MiB at the peak that the backward pass does not need."""
    found = answer(run(name), "outputs-kept")

    assert found.bytes == 4 * MIB
    assert found.fixes[0].saves_bytes == 4 * MIB


def test_a_more_exact_finding_takes_the_place_of_another():
    """GIVEN hidden states that live on in the next step, THEN graph-kept says where its bytes are explained."""
    capture = capture_of(
        allocation_of(8 * MIB, born=1, died=9, saved_by="MmBackward0", backward=1, node=2),
        allocation_of(MIB, born=3, died=4, node=1, **BACKWARD),
        allocation_of(8 * MIB, born=6, died=11, step=2, saved_by="MmBackward0", backward=2, node=2),
        allocation_of(MIB, born=8, died=10, step=2, node=1, **BACKWARD),
        steps=(step_of(1, 1, 5, (2,), 9 * MIB), step_of(2, 6, 11, (7,), 17 * MIB)),
        observed=True,
        holds=(hold(1, "outputs.hidden_states[0]"), hold(6, "outputs.hidden_states[0]", tick=7)),
    )
    findings, examined = examine(capture)

    assert findings[0].rule == "outputs-kept"
    assert "graph-kept" not in {finding.rule for finding in findings}
    assert "are those of outputs-kept" in next(each.why for each in examined if each.rule == "graph-kept")


def test_without_a_look_nothing_is_decided():
    """A record of a real run has no names."""
    capture = capture_of(allocation_of(MIB, born=1, died=3), steps=(step_of(1, 1, 3, (2,)),))

    assert answer(capture, "outputs-kept").outcome is Outcome.NOT_DECIDABLE


@pytest.mark.parametrize(("died", "outcome"), [(15, "outputs-kept"), (None, Outcome.REFUTED)])
def test_statistics_that_later_steps_go_on_with(died, outcome):
    """What has a name and no backward pass needs: replaced in the next step, or averaged for the whole run."""
    named = allocation_of(4 * MIB, born=1, died=died, step=1)
    later = allocation_of(8 * MIB, born=5, died=12, step=1)
    steps = tuple(step_of(step, first, first + 9, (first + 2,)) for step, first in ((1, 1), (2, 11), (3, 21)))
    found = answer(
        capture_of(named, later, steps=steps, observed=True, holds=(hold(1, "optimizer.factors[0]"),)), "outputs-kept"
    )

    assert outcome == (found.rule if died else found.outcome)
