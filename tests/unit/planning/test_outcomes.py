"""What a simulated run comes to for the planner."""

import pytest

from helpers import allocation_of, capture_of, step_of
from peaksight.planning.outcomes import outcome_of
from peaksight.records import BatchFact, ModuleFact, OptimizerFact
from peaksight.units import MIB

STEPS = (step_of(1, 0, 10), step_of(2, 10, 20), step_of(3, 20, 30))


def batch(step, loader=0, num_batches=100):
    about = {"tick": 1, "at": "train.py:1", "batch_size": 4, "bytes": 8, "shapes": ""}
    return BatchFact(step=step, loader=loader, num_batches=num_batches, **about)


def outcome(**about):
    return outcome_of((capture_of(allocation_of(MIB, born=1), steps=STEPS, **about),), limit_bytes=MIB)


def test_parameters_are_counted():
    """Numbers, whatever their dtype: those of the modules, and those that an optimizer trains."""
    row = {"optimizer": 0, "kind": "Adam", "how": "foreach", "state_dtype": "float32", "count": 1, "state_bytes": 0}
    modules = (ModuleFact(module="Net.a", parameter_bytes=400, frozen_bytes=0, num_elements=100),
               ModuleFact(module="Net.b", parameter_bytes=40, frozen_bytes=40, num_elements=20))  # fmt: skip
    optimizers = (OptimizerFact(**row, dtype="float32", frozen=False, parameter_bytes=400, num_elements=100),
                  OptimizerFact(**row, dtype="bfloat16", frozen=True, parameter_bytes=40, num_elements=20))  # fmt: skip

    assert outcome(modules=modules, optimizers=optimizers).parameters == (120, 100)


@pytest.mark.parametrize(
    "batches, steps",
    [
        ([batch(step) for step in (1, 2, 3)], 100),
        ([batch(step) for step in (1, 1, 1, 2, 2, 2, 3, 3, 3)], 33),
        ([batch(1), batch(2), batch(2), batch(3)], 0),
        ([batch(step, num_batches=0) for step in (1, 2, 3)], 0),
        ([], 0),
    ],
)
def test_steps_of_an_epoch(batches, steps):
    """Full ones; unknown where steps read different numbers of batches, or the loader has no length."""
    assert outcome(batches=tuple(batches)).steps_per_epoch == steps
