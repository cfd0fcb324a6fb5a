"""What an evaluation collects."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.evaluation_accumulates import RULE
from peaksight.records import Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of
from tests.helpers_passes import call_of

NUM_BATCHES = 5


def look(blocks, *, training=False, recorded=False):
    """A call of ten ticks for each batch, at whose end `blocks(batch, tick)` are made."""
    made = [
        allocation_of(size, phase=Phase.EVALUATION, grad_enabled=False, source="eval.py:3", **about)
        for batch in range(NUM_BATCHES)
        for size, about in blocks(batch, 10 * batch + 15)
    ]
    calls = [call_of(10 * b + 10, 10 * b + 14, training=training, recorded=recorded) for b in range(NUM_BATCHES)]
    return RULE.look(Evidence(capture_of(*made, observed=True, passes=calls)))


def test_predictions_in_a_list():
    """All but those of the last batch are there for nothing on the card."""
    (finding,) = look(lambda batch, tick: [(8 * MIB, {"born": tick})])

    assert finding.bytes == 32 * MIB
    assert finding.at == "eval.py:3"


def test_what_a_model_that_acts_leaves_is_no_evaluation():
    """In train mode without autograd, as a policy that fills a replay buffer."""
    (acting,) = look(lambda batch, tick: [(8 * MIB, {"born": tick})], training=True)
    (evaluating,) = look(lambda batch, tick: [(8 * MIB, {"born": tick})])

    assert acting.title.startswith("Forward passes without a backward leave")
    assert evaluating.title.startswith("An evaluation collects")


def test_predictions_that_are_joined_for_each_batch():
    """The old tensor and the new one, twice what is kept."""
    (finding,) = look(
        lambda batch, tick: [(8 * MIB * (batch + 1), {"born": tick, "died": tick + 11, "op": "aten::cat"})]
    )

    assert finding.bytes == 8 * MIB * (NUM_BATCHES + NUM_BATCHES - 1)


def test_what_dies_with_the_next_batch_is_not_collected():
    """Under one name."""
    answer = look(lambda batch, tick: [(8 * MIB, {"born": tick, "died": tick + 12})])

    assert answer.outcome is Outcome.REFUTED


def test_training_is_no_evaluation():
    """Whatever it keeps."""
    answer = look(lambda batch, tick: [(8 * MIB, {"born": tick})], training=True, recorded=True)

    assert answer.outcome is Outcome.REFUTED


def test_a_frozen_model_that_gradients_flow_through_is_not_evaluated():
    """Near miss: it is in eval(), and a backward pass uses what each of its calls made."""

    def blocks(batch, tick):
        return [(8 * MIB, {"born": tick}), (MIB, {"born": tick - 3, "backward": batch + 1})]

    assert look(blocks).outcome is Outcome.REFUTED


def test_without_autograd_a_model_in_training_mode_is_evaluated():
    """GIVEN somebody forgot eval()."""
    (finding,) = look(lambda batch, tick: [(8 * MIB, {"born": tick})], training=True, recorded=False)

    assert finding.bytes == 32 * MIB
