"""Parameters, gradients and state, where they are the peak and where not; and whether the batch could lower it."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import model_state, optimizer_temporaries, smaller_input_no_effect
from peaksight.records import OptimizerFact, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

STEPS = [step_of(1, 1, 40, backward_began=[10])]


def test_state_is_most_of_the_peak():
    """All of it together, with what each part has."""
    (finding,) = model_state.RULE.look(Evidence(_in_optimizer(activation=MIB)))

    assert finding.bytes == 8 * MIB
    assert "the optimizer's step has 1.00 MiB of temporaries beside them" in finding.evidence
    assert "parameters 2.00 MiB, gradients 2.00 MiB, optimizer state 4.00 MiB" in finding.evidence


def test_temporaries_of_all_parameters_at_once():
    """With `foreach`, of which the loop would have those of one."""
    (finding,) = optimizer_temporaries.RULE.look(Evidence(_in_optimizer(activation=MIB, optimizers=[_adam("foreach")])))

    assert finding.bytes == MIB
    assert [fix.kind for fix in finding.fixes] == ["fused-optimizer", "for-loop-optimizer"]


def test_temporaries_of_one_parameter_are_state_of_the_model():
    """Near miss: torch's own loop holds no more than the largest parameter asks for."""
    run = _in_optimizer(activation=MIB, optimizers=[_adam("for-loop")])

    assert optimizer_temporaries.RULE.look(Evidence(run)).why.startswith("Adam goes through the parameters one by one")


def test_activations_are_no_state():
    """The share is in the answer."""
    answer = model_state.RULE.look(Evidence(_in_optimizer(activation=90 * MIB)))

    assert answer.outcome is Outcome.REFUTED
    assert answer.why == "parameters, gradients and optimizer state hold 4.00 MiB (4 % of the peak)"


def test_a_smaller_batch_does_nothing_for_a_peak_in_the_optimizer():
    """Forward and backward come to 5 MiB, the step to 9."""
    (finding,) = smaller_input_no_effect.RULE.look(Evidence(_in_optimizer(activation=MIB)))

    assert finding.without_effect
    assert finding.bytes == 0
    assert "forward and backward come to 5.00 MiB, 4.00 MiB less" in finding.evidence


def test_a_smaller_batch_helps_where_activations_are_the_peak():
    """Near miss: the same run with a larger batch."""
    answer = smaller_input_no_effect.RULE.look(Evidence(_in_optimizer(activation=90 * MIB)))

    assert answer.outcome is Outcome.REFUTED


def _adam(how):
    about = {"dtype": "float32", "state_dtype": "float32", "frozen": False, "count": 1}
    return OptimizerFact(optimizer=0, kind="Adam", how=how, parameter_bytes=2 * MIB, state_bytes=4 * MIB, **about)


def _in_optimizer(activation, optimizers=()):
    """2 MiB of parameters, an activation, a gradient, 4 MiB of state and a temporary of 1 MiB."""
    step = {"phase": Phase.OPTIMIZER, "grad_enabled": False}
    return capture_of(
        allocation_of(2 * MIB, born=1, role=Role.PARAMETER, phase=Phase.INIT),
        allocation_of(activation, born=2, died=13),
        allocation_of(2 * MIB, born=12, role=Role.GRADIENT, phase=Phase.BACKWARD),
        allocation_of(4 * MIB, born=14, role=Role.OPTIMIZER_STATE, **step),
        allocation_of(MIB, born=15, died=16, **step),
        steps=STEPS,
        optimizers=tuple(optimizers),
    )
