"""What one batch saves for its backward, and what checkpointing of blocks would leave of it."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.activations import RULE
from peaksight.records import CheckpointFact, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

STEPS = [step_of(1, 1, 40, backward_began=[20])]


def test_blocks_but_the_largest_would_go_with_checkpointing():
    """Of each block its last tensor stays; of three blocks of 2 + 1 MiB, two lose 2 MiB."""
    capture = capture_of(*(a for place in range(3) for a in _block(place)), steps=STEPS)
    (finding,) = RULE.look(Evidence(capture))
    checkpointing, smaller = finding.fixes

    assert (finding.bytes, finding.at) == (9 * MIB, "train.py:1")
    assert (checkpointing.kind, checkpointing.saves_bytes) == ("activation-checkpointing", 4 * MIB)
    assert smaller.kind == "smaller-batch"


def test_a_model_without_numbered_modules_gets_no_estimate():
    """Where it could be cut is not known."""
    capture = capture_of(allocation_of(9 * MIB, born=1, module="Net.encoder"), steps=STEPS)
    (finding,) = RULE.look(Evidence(capture))

    assert [fix.kind for fix in finding.fixes] == ["smaller-batch"]


def test_blocks_that_save_hardly_anything_get_no_estimate():
    """Near miss: two norms of 1 KiB beside 9 MiB of other layers."""
    norms = (allocation_of(1024, born=2 + place, module=f"Net.norms.{place}") for place in range(2))
    capture = capture_of(allocation_of(9 * MIB, born=1, module="Net.encoder"), *norms, steps=STEPS)
    (finding,) = RULE.look(Evidence(capture))

    assert [fix.kind for fix in finding.fixes] == ["smaller-batch"]


def test_a_batch_of_an_evaluation():
    """GIVEN the peak is in a forward without autograd, THEN what this one computes with is told."""
    passing = {"phase": Phase.EVALUATION, "grad_enabled": False, "step": 2}
    layers = [
        allocation_of(6 * MIB, born=21 + place, died=23 + place, tensor="float32[9]", **passing) for place in (0, 1)
    ]
    (finding,) = RULE.look(Evidence(capture_of(allocation_of(MIB, born=1), *layers, steps=STEPS)))

    assert finding.bytes == 12 * MIB
    assert finding.title.startswith("Activations of one batch of an evaluation hold 12.00 MiB")
    assert finding.fixes[0].kind == "smaller-evaluation-batch"


def test_a_forward_without_autograd_in_training_is_no_evaluation():
    """As that of a teacher, or of an `autograd.Function` of one's own."""
    layer = allocation_of(6 * MIB, born=4, died=9, grad_enabled=False)
    (finding,) = RULE.look(Evidence(capture_of(allocation_of(MIB, born=1), layer, steps=STEPS)))

    assert finding.title.startswith("Activations of one batch of a forward without autograd hold 6.00 MiB")
    assert finding.fixes[0].text == "A smaller batch in that forward, half as large here."


def test_what_a_checkpoint_does_without_autograd_is_no_evaluation():
    """Near miss: a reentrant one computes so in training."""
    layer = allocation_of(6 * MIB, born=4, died=9, grad_enabled=False)
    checkpoint = CheckpointFact(
        step=1,
        at="train.py:9",
        module="Net.0",
        reentrant=True,
        input_needs_grad=True,
        grad_enabled=True,
        first_tick=3,
        last_tick=9,
        recomputed_from=0,
        recomputed_to=0,
    )
    run = capture_of(allocation_of(MIB, born=1), layer, steps=STEPS, checkpoints=(checkpoint,))

    assert RULE.look(Evidence(run)).outcome is Outcome.REFUTED


def test_temporaries_of_a_batch_count_where_little_is_saved():
    """GIVEN a backward that makes 9 MiB of several shapes, as after checkpointing."""
    made = [
        allocation_of(3 * MIB, born=born, died=39, phase=Phase.BACKWARD, grad_enabled=False, tensor=f"float32[{born}]")
        for born in (21, 22, 23)
    ]
    (finding,) = RULE.look(Evidence(capture_of(allocation_of(2 * MIB, born=1), *made, steps=STEPS)))

    assert finding.title.startswith("Activations and temporaries of one batch hold 11.00 MiB")


def test_a_peak_of_parameters_is_none():
    """With the share that activations do hold."""
    parameters = allocation_of(90 * MIB, born=0, role=Role.PARAMETER)
    answer = RULE.look(Evidence(capture_of(parameters, *_block(0), steps=STEPS)))

    assert answer.outcome is Outcome.REFUTED
    assert "hold 3.00 MiB (3 % of the peak)" in answer.why


def test_without_a_backward_pass_nothing_can_be_said():
    """What would be saved for it is not known."""
    capture = capture_of(allocation_of(MIB, born=1), steps=[step_of(1, 1, 40)])

    assert RULE.look(Evidence(capture)).outcome is Outcome.NOT_DECIDABLE


def _block(place):
    module = f"Net.layers.{place}"
    return (
        allocation_of(2 * MIB, born=2 * place + 1, died=30 + 2 * place, module=f"{module}.linear"),
        allocation_of(MIB, born=2 * place + 2, died=31 + 2 * place, module=module),
    )
