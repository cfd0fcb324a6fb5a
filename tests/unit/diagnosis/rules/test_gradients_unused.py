"""Gradients of parameters that are in no optimizer, and what is saved for them."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.gradients_unused import RULE
from peaksight.records import OptimizerFact, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import call_of

STEPS = [step_of(1, 1, 19, [9], 0), step_of(2, 20, 39, [29], 0)]
GRADIENT = {"role": Role.GRADIENT, "phase": Phase.BACKWARD, "grad_enabled": False}
SAVED = {"saved_by": "MulBackward0"}


def look(*, is_set_to_none=True, trained_bytes=4 * MIB, input_needs_grad=False):
    """Two steps of a model and a reference: 8 MiB of activations and a gradient of 4 MiB each."""
    runs = []
    for number, first in enumerate((1, 21), 1):
        about = {"step": number, "backward": number, "died": first + 12, **SAVED}
        runs += [
            allocation_of(8 * MIB, born=first + 1, node=2 * number, **about),
            allocation_of(8 * MIB, born=first + 3, node=2 * number - 1, **about),
        ]
        if is_set_to_none or number == 1:
            died = first + 22 if is_set_to_none else None
            runs.append(allocation_of(4 * MIB, born=first + 9, died=died, step=number, node=2 * number, **GRADIENT))
    of_reference = allocation_of(4 * MIB, born=11, node=1, module="Reference", **GRADIENT)
    calls = [
        call_of(first + place, first + place + 1, step=number, module=module, input_needs_grad=input_needs_grad)
        for number, first in enumerate((1, 21), 1)
        for place, module in ((0, "Model"), (2, "Reference"))
    ]
    optimizer = OptimizerFact(
        optimizer=0,
        kind="SGD",
        how="foreach",
        dtype="float32",
        state_dtype="",
        frozen=False,
        count=1,
        parameter_bytes=trained_bytes,
        state_bytes=0,
    )
    blocks = sorted([*runs, of_reference], key=lambda block: block.born)
    return RULE.look(
        Evidence(capture_of(*blocks, steps=STEPS, observed=True, passes=tuple(calls), optimizers=(optimizer,)))
    )


def test_a_reference_that_was_not_frozen():
    """Its gradient stays for good, and its activations are saved for that alone."""
    (finding,) = look()

    assert finding.bytes == 12 * MIB
    assert finding.title.startswith("4.00 MiB of gradients")
    assert finding.evidence[1].startswith("8.00 MiB of activations")


def test_activations_through_which_a_gradient_goes_on_are_needed():
    """GIVEN the reference looks at what the model made, THEN only its gradient would go."""
    (finding,) = look(input_needs_grad=True)

    assert finding.bytes == 4 * MIB


def test_what_an_optimizer_has_is_used():
    """Near miss: both models are trained."""
    assert look(trained_bytes=8 * MIB).why == "gradients of 8.00 MiB, and optimizers train 8.00 MiB"


def test_gradients_that_are_set_to_zero():
    """All of them stay, so that nothing tells which are in vain."""
    assert look(is_set_to_none=False).outcome is Outcome.NOT_DECIDABLE
