"""Graphs of backward passes."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.double_backward import RULE
from peaksight.records import Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import backward_of


def look(*, creates_graph, died=30, saved_by="MulBackward0"):
    """A forward of 4 MiB, a pass that makes 8 MiB for another one, and something in between."""
    capture = capture_of(
        allocation_of(4 * MIB, born=1, died=31, backward=1),
        allocation_of(8 * MIB, born=11, died=died, phase=Phase.BACKWARD, source="train.py:5", saved_by=saved_by),
        allocation_of(MIB, born=13, died=32),
        observed=True,
        backwards=[backward_of(1, 10, creates_graph=creates_graph), backward_of(2, 20)],
        steps=[step_of(1, 1, 40, (10, 20))],
    )
    return RULE.look(Evidence(capture))


def test_what_a_pass_makes_for_another():
    """The line that asks for it is told."""
    (finding,) = look(creates_graph=True)

    assert (finding.bytes, finding.at) == (8 * MIB, "train.py:5")
    assert finding.evidence[0] == "create_graph=True at train.py:9"


def test_what_a_checkpoint_computes_again_is_none():
    """It is recorded, in a pass that creates no graph."""
    assert look(creates_graph=False).why == "no backward pass was asked to create a graph"


def test_what_dies_in_its_pass_is_for_no_other():
    """A gradient on the way."""
    assert look(creates_graph=True, died=12).outcome is Outcome.REFUTED


def test_gradients_that_nothing_saves_are_no_graph():
    """torch.func.grad always asks for a graph, and what it gives is a gradient for each sample."""
    assert look(creates_graph=True, saved_by="").outcome is Outcome.REFUTED
