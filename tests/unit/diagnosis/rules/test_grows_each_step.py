"""What steps leave behind."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.grows_each_step import RULE
from peaksight.records import Outcome, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import hold_of


def look(num_steps, *, lives_for=99, **about):
    """Steps of ten ticks, in each of which 8 MiB are made that die `lives_for` steps later."""
    blocks = [
        allocation_of(8 * MIB, born=10 * step + 1, died=10 * (step + lives_for) + 5, step=step, **about)
        for step in range(1, num_steps + 1)
    ]
    steps = [step_of(step, 10 * step, 10 * step + 9) for step in range(1, num_steps + 1)]
    holds = [hold_of(10 * step + 1, f"kept[{step - 1}]", tick=52, step=5) for step in range(1, num_steps)]
    return RULE.look(Evidence(capture_of(*blocks, steps=steps, observed=True, holds=holds)))


def test_a_list_that_grows():
    """Its line, bytes a step and names; the step at which the card is full."""
    (finding,) = look(5)

    assert finding.bytes == 32 * MIB
    assert finding.at == "train.py:1"
    assert "Every step leaves 8.00 MiB behind" in finding.title
    assert any("`kept[*]` in train.py:main holds 24.00 MiB" in line for line in finding.evidence)


def test_inputs_grow_as_well():
    """Batches in a list."""
    (finding,) = look(5, role=Role.INPUT)

    assert finding.bytes == 32 * MIB


def test_what_is_replaced_in_the_next_step_does_not_grow():
    """An output under its name."""
    assert look(6, lives_for=1).outcome is Outcome.REFUTED


def test_state_is_no_growth():
    """Made in one step for all that follow."""
    assert look(6, role=Role.OPTIMIZER_STATE).outcome is Outcome.REFUTED


def test_three_steps_do_not_tell():
    """Two of them may be the first and the last."""
    assert look(3).outcome is Outcome.NOT_DECIDABLE


def test_little_that_grows_is_told():
    """GIVEN a step adds a thousandth of the peak; near miss: a number of each step."""
    fixed = allocation_of(1024 * MIB, born=1, step=0)
    steps = [step_of(step, 10 * step, 10 * step + 9) for step in range(1, 7)]

    def answer(size):
        blocks = [allocation_of(size, born=10 * step + 1, step=step) for step in range(1, 7)]
        return RULE.look(Evidence(capture_of(fixed, *blocks, steps=steps, observed=True)))

    (finding,) = answer(MIB)

    assert "Every step leaves 1.00 MiB behind" in finding.title
    assert answer(512).outcome is Outcome.REFUTED
