"""Which DataLoader gives the batches of the training."""

import pytest

from helpers import allocation_of, capture_of, step_of
from peaksight.planning.loops import loading_of
from peaksight.planning.situation import Situation
from peaksight.records import BatchFact


@pytest.mark.parametrize(
    "steps_of_batches, is_training",
    [
        ([1, 2, 3, 4], True),
        ([1, 1, 2, 3], True),  # one ahead
        ([1, 1, 3, 3], True),  # one ahead, with epochs of two batches
        ([1, 2, 3], True),  # the first came before the first step
        ([1, 1, 1, 1, 1], False),  # a validation before the training
        ([2, 4], False),
    ],
)
def test_batches_of_every_step(steps_of_batches, is_training):
    """Read in it or ahead of it."""
    batches = [BatchFact(tick=1, step=step, loader=0, at="train.py:3", batch_size=4, bytes=8, shapes="")
               for step in steps_of_batches]  # fmt: skip
    steps = [step_of(step, step, step) for step in (1, 2, 3, 4)]
    capture = capture_of(allocation_of(512, born=1), steps=steps, batches=batches)
    situation = Situation(command=None, room=None, capture=capture, report=None, limit_bytes=1)

    assert (loading_of(situation) is not None) is is_training
