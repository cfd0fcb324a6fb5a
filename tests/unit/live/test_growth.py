"""Memory that grows: when the card will be full, and by which line."""

from peaksight.live.growth import Growth
from peaksight.records.watched import WatchedStep
from peaksight.units import GIB, MIB


def step_of(step, allocated_bytes, *, free_bytes=10 * GIB):
    return WatchedStep(
        step=step,
        time=0.0,
        seconds=0.1,
        device=0,
        peak_allocated_bytes=allocated_bytes + GIB,
        allocated_bytes=allocated_bytes,
        reserved_bytes=allocated_bytes + GIB,
        free_bytes=free_bytes,
    )


class MadeUpHolders:
    """Two lines, of which the second holds a MiB more with every look."""

    def __init__(self):
        self.looks = 0

    def begin(self):
        return True

    def bytes_by_line(self, device):
        self.looks += 1
        return {"train.py:3": 50 * MIB, "train.py:9": self.looks * 4 * MIB}


def said_after(growth, held):
    """What is said of steps that leave `held` bytes each."""
    return [
        (step, kind, text)
        for step, allocated in enumerate(held, 1)
        for kind, text in growth.after(step_of(step, allocated))
    ]


def test_a_leak():
    """GIVEN 1 MiB a step on a card with 10 GiB free, THEN it is foreseen, and the line is found."""
    holders = MadeUpHolders()
    said = said_after(Growth(holders), [step * MIB for step in range(1, 30)])

    assert [(step, kind) for step, kind, _ in said] == [(16, "growth"), (21, "growth-line")]
    assert said[0][2] == (
        "allocated memory grows by 1.00 MiB a step: if it goes on, the card is full at about step 10256"
    )
    assert said[1][2] == "what grows is allocated at train.py:9: 1.00 MiB a step"
    assert holders.looks == 2


def test_the_end_is_near():
    """It is said once more."""
    said = said_after(Growth(), [step * GIB // 2 for step in range(1, 24)])

    assert [kind for _, kind, _ in said] == ["growth", "nearly-full"]


def test_growth_that_stops():
    """Caches that fill in the first steps are no leak."""
    assert said_after(Growth(), [*(step * MIB for step in range(1, 12)), *[12 * MIB] * 300]) == []


def test_batches_of_many_lengths():
    """What is left goes up and down."""
    assert said_after(Growth(), [(step * 7919 % 100) * MIB for step in range(600)]) == []


def test_growth_now_and_then():
    """GIVEN 64 MiB at every tenth step between batches of many lengths, THEN it is seen all the same."""
    held = [(step // 10) * 64 * MIB + (step * 7919 % 10) * MIB for step in range(1, 400)]

    assert [kind for _, kind, _ in said_after(Growth(), held)] == ["growth"]


def test_growth_that_would_take_for_ever():
    """Is not worth a warning."""
    assert said_after(Growth(), [step * 512 for step in range(1, 300)]) == []
