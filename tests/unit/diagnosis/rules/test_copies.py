"""Copies of a model: an average, one that is saved, and casts that are none."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import ema_copies, save_copies
from peaksight.records import Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import call_of

PARAMETER = {"role": Role.PARAMETER, "module": "Net.layer", "tensor": "float32[1024, 2048]"}


def look(rule, *copies, original_died=None):
    """Parameters of 8 MiB with a gradient, and `copies` of them, as (born, facts)."""
    made = [allocation_of(8 * MIB, born=born, **({"copy_of": 1} | facts)) for born, facts in copies]
    capture = capture_of(
        allocation_of(8 * MIB, born=1, died=original_died, phase=Phase.INIT, **PARAMETER),
        *sorted(
            [allocation_of(8 * MIB, born=20, died=60, **(PARAMETER | {"role": Role.GRADIENT})), *made],
            key=lambda a: a.born,
        ),
        observed=True,
        passes=[call_of(10, 15)],
        steps=[step_of(1, 5, 40, (18,))],
    )
    return rule.look(Evidence(capture))


def test_an_average_that_begins_as_a_copy():
    """Made before the first forward, and there ever after."""
    (finding,) = look(ema_copies.RULE, (3, {"phase": Phase.INIT, "role": Role.PARAMETER, "source": "train.py:4"}))

    assert (finding.bytes, finding.at) == (8 * MIB, "train.py:4")


def test_a_second_model_of_the_same_shapes():
    """Made apart: of two such parameters one has a gradient."""
    (finding,) = look(ema_copies.RULE, (3, PARAMETER | {"phase": Phase.INIT, "copy_of": 0}))

    assert finding.bytes == 8 * MIB


def test_a_model_that_is_cast_is_no_copy():
    """Its original dies."""
    answer = look(ema_copies.RULE, (3, {"phase": Phase.INIT, "role": Role.PARAMETER}), original_died=4)

    assert answer.outcome is Outcome.REFUTED


def test_a_state_that_is_cloned_between_steps():
    """And the one before, which is replaced only then."""
    (finding,) = look(save_copies.RULE, (45, {"died": 56}), (55, {"source": "train.py:30"}))

    assert finding.bytes == 16 * MIB
    assert "16.00 MiB at the peak" in finding.title


def test_a_cast_in_a_forward_is_no_copy_to_save():
    """As autocast makes them."""
    assert look(save_copies.RULE, (12, {})).outcome is Outcome.REFUTED
    assert look(ema_copies.RULE, (12, {})).outcome is Outcome.REFUTED


def test_a_cast_in_a_forward_that_was_cut_short():
    """An out-of-memory error that was caught left no pass; the module that ran tells."""
    assert look(save_copies.RULE, (45, {"module": "Net.layer"})).outcome is Outcome.REFUTED
    assert look(ema_copies.RULE, (3, {"module": "Net.layer"})).outcome is Outcome.REFUTED
