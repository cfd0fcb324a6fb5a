"""Graphs of several passes at the peak: added up, of micro-batches, or of a recurrence."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.accumulated_graph import RULE
from peaksight.records import Effect, Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import backward_of, call_of, hold_of, term_of


def look(*allocations, **about):
    """What the rule says of a run that was looked at."""
    facts = {"observed": True, "steps": [step_of(1, 1, 40, backward_began=[2])]}
    return RULE.look(Evidence(capture_of(*allocations, **(facts | about))))


def evaluation(collected):
    """Four batches after a step, whose graphs nothing goes through, and the look at the last of them."""
    births = [10, 13, 16, 19]
    blocks = [
        allocation_of(8 * MIB, born=born, died=30 + i, step=2, phase=Phase.EVALUATION, module="Model.layer")
        for i, born in enumerate(births)
    ]
    calls = [call_of(born, born + 1, step=2, training=False) for born in births]
    holds = [hold_of(born, "total", tick=22, step=2, by_graph=True) for born in births] if collected else []
    return {"blocks": blocks, "calls": calls, "holds": holds or [hold_of(1, "x", tick=22, step=2)]}


def test_losses_of_an_evaluation_that_are_added_up():
    """All but the graph that would be there anyway would go."""
    run = evaluation(collected=True)
    step = allocation_of(MIB, born=1, died=4, backward=1)
    (finding,) = look(step, *run["blocks"], passes=run["calls"], holds=run["holds"])

    assert finding.bytes == 24 * MIB
    assert "The graphs of 3 forward passes" in finding.title
    assert any("`total` in train.py:main holds 24.00 MiB by its graph" in line for line in finding.evidence)
    assert finding.fixes[0].effect is Effect.BITWISE


def test_what_no_variable_leads_to_is_not_added_up():
    """A cycle is told by graph-kept."""
    run = evaluation(collected=False)
    answer = look(
        allocation_of(MIB, born=1, died=4, backward=1), *run["blocks"], passes=run["calls"], holds=run["holds"]
    )

    assert answer.outcome is Outcome.REFUTED


def micro_batches(num_terms, **about):
    """A step whose one backward pass goes through blocks of `num_terms` forwards, 8 MiB each."""
    blocks = [
        allocation_of(8 * MIB, born=1 + term, died=20 + term, backward=1, saved_by="TanhBackward0")
        for term in range(num_terms)
    ]
    terms = [term_of(1, 1 + term) for term in range(num_terms)]
    facts = {"backwards": [backward_of(1, 12)], "terms": terms, "steps": [step_of(1, 1, 40, backward_began=[12])]}
    return look(*blocks, **(facts | about))


def test_micro_batches_with_one_backward_pass():
    """One graph at a time is left."""
    (finding,) = micro_batches(4)

    assert finding.bytes == 24 * MIB
    assert "4 graphs wait for one backward pass" in finding.title
    assert finding.fixes[0].effect is Effect.ROUNDING


def test_the_steps_of_a_recurrence_are_no_terms():
    """Their graphs are one."""
    answer = micro_batches(4, terms=[])

    assert answer.outcome is Outcome.REFUTED


def test_two_terms_are_another_rule_s():
    """two-graphs tells of them."""
    assert micro_batches(2).outcome is Outcome.REFUTED


def test_without_a_backward_pass_nothing_is_decided():
    """An inference."""
    assert look(allocation_of(MIB, born=1), steps=()).outcome is Outcome.NOT_DECIDABLE


def inner_loops(*, creates_graph):
    """Four calls of a model in one step, each of which a pass goes through before the next, and a last pass for all."""
    births = [2, 6, 10, 14]
    return look(
        *(allocation_of(8 * MIB, born=b, died=30, backward=i, module="Model.layer") for i, b in enumerate(births, 1)),
        passes=[call_of(born, born + 1) for born in births],
        backwards=[*(backward_of(i, b + 2, creates_graph=creates_graph) for i, b in enumerate(births, 1))],
        holds=[hold_of(born, "loss", tick=20, by_graph=True) for born in births],
        steps=[step_of(1, 1, 40, backward_began=[born + 2 for born in births])],
    )


def test_the_inner_loops_of_meta_learning_need_their_graphs():
    """The outer loss goes through them again; near miss: passes that record nothing."""
    (finding,) = inner_loops(creates_graph=False)

    assert "graphs of 3 forward passes" in finding.title
    assert inner_loops(creates_graph=True).outcome is Outcome.REFUTED
