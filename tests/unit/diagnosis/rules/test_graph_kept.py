"""What outlives the backward pass that it was for."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.graph_kept import RULE
from peaksight.records import Effect, Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import backward_of, call_of, hold_of

TWO_STEPS = (step_of(1, 1, 5, (2,)), step_of(2, 6, 11, (7,)))


def two_steps(died, **about):
    """8 MiB of activations a step, those of the first alive until `died`."""
    blocks = (
        allocation_of(8 * MIB, born=1, died=died, backward=1),
        allocation_of(MIB, born=3, died=4, phase=Phase.BACKWARD, grad_enabled=False),
        allocation_of(8 * MIB, born=6, died=11, step=2, backward=2),
        allocation_of(MIB, born=8, died=10, step=2, phase=Phase.BACKWARD, grad_enabled=False),
    )
    passes = [call_of(1, 1), call_of(6, 6, step=2)]
    return RULE.look(Evidence(capture_of(*blocks, steps=TWO_STEPS, passes=passes, **about)))


def test_outputs_of_the_step_before():
    """Named where a look saw it."""
    hold = hold_of(1, "output", tick=7, step=2, by_graph=True)
    (finding,) = two_steps(
        died=9, observed=True, holds=[hold], backwards=[backward_of(1, 2), backward_of(2, 7, step=2)]
    )

    assert finding.bytes == 8 * MIB
    assert finding.title == "What step 1 saved for its backward is alive in step 2"
    assert any("`output` in train.py:main holds 8.00 MiB by its graph" in line for line in finding.evidence)


def test_a_recording_tells_it_by_steps():
    """Without names."""
    (finding,) = two_steps(died=9)

    assert finding.bytes == 8 * MIB


def test_what_dies_in_its_step_is_no_cause():
    """At its end."""
    answer = two_steps(died=5, observed=True, backwards=[backward_of(1, 2), backward_of(2, 7, step=2)])

    assert answer.outcome is Outcome.REFUTED
    assert "holds 0 B at the peak" in answer.why


def chunks(retains_graph, model="Model"):
    """One step of two chunks with a backward pass each; the first one's graph is alive in the second."""
    blocks = (
        allocation_of(8 * MIB, born=1, died=30, backward=1, module="Model.rnn"),
        allocation_of(8 * MIB, born=6, died=31, backward=2, module=f"{model}.rnn"),
    )
    return RULE.look(
        Evidence(
            capture_of(
                *blocks,
                observed=True,
                passes=[call_of(1, 1), call_of(5, 7, module=model)],
                backwards=[
                    backward_of(1, 2, retains_graph=retains_graph),
                    backward_of(2, 8, retains_graph=retains_graph),
                ],
                steps=[step_of(1, 1, 40, (2, 8))],
            )
        )
    )


def test_a_hidden_state_with_its_graph():
    """The graph of the chunk before is there while the next one is made, and the line that retains it is told."""
    (finding,) = chunks(retains_graph=True)

    assert finding.bytes == 8 * MIB
    assert finding.fixes[0].effect is Effect.MODEL
    assert any("train.py:9 was asked to keep its graph" in line for line in finding.evidence)


def test_a_graph_that_another_model_goes_on_from_is_needed():
    """GIVEN a generator's graph that the critic's loss goes through as well, THEN it is not done with."""
    assert chunks(retains_graph=True, model="Critic").outcome is Outcome.REFUTED


def test_statistics_are_no_graph():
    """Near miss: what no graph saved and an optimizer goes on with for all of the run."""
    steps = [step_of(step, 10 * step, 10 * step + 9, (10 * step + 1,)) for step in (1, 2, 3)]
    factors, later = allocation_of(8 * MIB, born=10, step=1), allocation_of(8 * MIB, born=33, step=3)
    capture = capture_of(
        factors,
        later,
        steps=steps,
        observed=True,
        holds=[hold_of(10, "optimizer.factors[0]", tick=31, step=3)],
        passes=[call_of(10 * step, 10 * step, step=step) for step in (1, 2, 3)],
        backwards=[backward_of(step, 10 * step + 1, step=step) for step in (1, 2, 3)],
    )

    assert RULE.look(Evidence(capture)).outcome is Outcome.REFUTED


def test_a_cycle():
    """Several steps, and no name at a look."""
    blocks = [allocation_of(8 * MIB, born=10 * step, step=step, backward=step) for step in (1, 2, 3)]
    steps = [step_of(step, 10 * step, 10 * step + 9, (10 * step + 1,)) for step in (1, 2, 3)]
    (finding,) = RULE.look(
        Evidence(
            capture_of(
                *blocks,
                steps=steps,
                observed=True,
                holds=[hold_of(99, "x", tick=31, step=3)],
                passes=[call_of(10 * step, 10 * step, step=step) for step in (1, 2, 3)],
                backwards=[backward_of(step, 10 * step + 1, step=step) for step in (1, 2, 3)],
            )
        )
    )

    assert finding.bytes == 16 * MIB
    assert finding.title == "The graphs of 2 earlier steps are alive, and no variable leads to them"
