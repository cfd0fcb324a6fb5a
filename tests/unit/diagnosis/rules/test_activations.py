"""What one batch saves for its backward, and what checkpointing of blocks would leave of it."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.activations import RULE
from peaksight.records import Outcome, Role
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
