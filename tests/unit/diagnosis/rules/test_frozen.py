"""What frozen modules save, and what an optimizer keeps for them."""

import pytest

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import frozen_optimizer_state, frozen_saves_activations
from peaksight.records import ModuleFact, OptimizerFact, Outcome, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

STEPS = [step_of(1, 1, 40, backward_began=[20])]


def test_a_frozen_module_saves_for_a_gradient_below():
    """What its child without parameters saves is its own, too."""
    saved = {"died": 30, "saved_by": "GeluBackward0", "backward": 1}
    answer = _look(
        allocation_of(3 * MIB, born=1, module="Net.body.mlp.act", **saved),
        allocation_of(2 * MIB, born=2, module="Net.body", **saved),
        allocation_of(MIB, born=3, module="Net.head", **saved),
    )
    (finding,) = answer

    assert finding.bytes == 5 * MIB
    assert "2 modules save; the most is in Net.body.mlp.act: 3.00 MiB" in finding.evidence


def test_what_is_frozen_beside_an_adapter_saves_for_it():
    """Near miss: the block of LoRA trains, so that what its MLP saves are activations like any other."""
    mlp = allocation_of(8 * MIB, born=1, module="Net.layers.0.mlp", died=30, saved_by="GeluBackward0", backward=1)
    modules = (
        ModuleFact(module="Net.layers.0.mlp", parameter_bytes=4 * MIB, frozen_bytes=4 * MIB),
        ModuleFact(module="Net.layers.0.lora", parameter_bytes=MIB, frozen_bytes=0),
    )

    assert _look(mlp, modules=modules).outcome is Outcome.REFUTED
    assert _look(mlp, modules=modules[:1])[0].bytes == 8 * MIB


def test_frozen_modules_at_the_bottom_save_nothing():
    """Near miss: no gradient flows there, so what they make is gone."""
    answer = _look(allocation_of(3 * MIB, born=1, died=2, module="Net.body"), allocation_of(MIB, born=3))

    assert answer.outcome is Outcome.REFUTED
    assert answer.why == "without what frozen modules save the peak falls by 0 B only"


def test_state_of_frozen_parameters_goes():
    """That of the trained ones stays."""
    (finding,) = frozen_optimizer_state.RULE.look(Evidence(_with_state(8 * MIB)))

    assert finding.bytes == 8 * MIB
    assert "AdamW has 2 frozen parameters of 4.00 MiB in float32, with 8.00 MiB of state" in finding.evidence


@pytest.mark.parametrize("state_bytes", [0])
def test_frozen_parameters_without_state_cost_nothing(state_bytes):
    """Near miss: they are in the optimizer, which has skipped them."""
    answer = frozen_optimizer_state.RULE.look(Evidence(_with_state(state_bytes)))

    assert answer.why == "4.00 MiB of frozen parameters are in an optimizer, and none has state"


def _look(*allocations, modules=None):
    capture = capture_of(*allocations, steps=STEPS, observed=True, modules=modules or _modules())
    return frozen_saves_activations.RULE.look(Evidence(capture))


def _modules():
    return (
        ModuleFact(module="Net.body.mlp", parameter_bytes=4 * MIB, frozen_bytes=4 * MIB),
        ModuleFact(module="Net.head", parameter_bytes=MIB, frozen_bytes=0),
    )


def _with_state(state_bytes):
    fact = OptimizerFact(
        optimizer=0,
        kind="AdamW",
        how="foreach",
        dtype="float32",
        state_dtype="float32",
        frozen=True,
        count=2,
        parameter_bytes=4 * MIB,
        state_bytes=state_bytes,
    )
    state = {"role": Role.OPTIMIZER_STATE}
    return capture_of(
        allocation_of(8 * MIB, born=1, module="Net.body.mlp", **state),
        allocation_of(2 * MIB, born=2, module="Net.head", **state),
        steps=STEPS,
        observed=True,
        modules=_modules(),
        optimizers=(fact,),
    )
