"""A card that is nearly full."""

from peaksight.live.pressure import Pressure
from peaksight.records.watched import WatchedStep
from peaksight.units import GIB


def kinds_after(*steps):
    pressure = Pressure()
    facts = {"time": 0.0, "seconds": 0.1, "device": 0}
    return [
        (number, kind)
        for number, about in enumerate(steps, 1)
        for kind, _ in pressure.after(WatchedStep(step=number, **facts, **about))
    ]


def test_one_retry():
    """Is said, and nothing more."""
    assert kinds_after({}, {"retries": 1}, {}, {}) == [(2, "retry")]


def test_thrash():
    """GIVEN retries in three of ten steps, THEN that is a habit, said once."""
    assert kinds_after(*[{"retries": 2}] * 6) == [(1, "retry"), (3, "thrash")]


def test_something_else_takes_memory():
    """GIVEN that free and reserved bytes together become fewer, THEN it is not this process's tensors."""
    steps = [
        {"free_bytes": 10 * GIB, "reserved_bytes": 2 * GIB},
        {"free_bytes": 6 * GIB, "reserved_bytes": 6 * GIB},
        {"free_bytes": 4 * GIB, "reserved_bytes": 6 * GIB},
    ]

    assert kinds_after(*steps) == [(3, "others")]
