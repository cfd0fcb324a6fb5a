"""The clocks of the host and of streams."""

import pytest

from peaksight.virtual_gpu.timing.clocks import QUEUE_LENGTH, Clocks

pytestmark = pytest.mark.torch
MAIN, SIDE = (0, 0), (0, 1)


def test_a_card_that_is_behind_hides_the_host():
    """Two long kernels: the host launches the second while the first runs."""
    clocks = Clocks()
    clocks.launch(MAIN, 1.0, 10.0)
    clocks.launch(MAIN, 1.0, 10.0)

    assert (clocks.host, clocks.now) == (2.0, 21.0)


def test_a_host_that_is_behind_hides_the_card():
    """Two short kernels: the card waits for the second."""
    clocks = Clocks()
    clocks.launch(MAIN, 10.0, 1.0)
    clocks.launch(MAIN, 10.0, 1.0)

    assert clocks.now == 21.0


def test_a_full_queue_holds_the_host_up():
    """Who launches more than the queue of a stream takes waits for the first of it; other streams have their own."""
    clocks = Clocks()
    for _ in range(QUEUE_LENGTH):
        clocks.launch(MAIN, 0.0, 10.0)
    clocks.launch(SIDE, 0.0, 10.0)

    assert clocks.host == 0.0

    clocks.launch(MAIN, 0.0, 10.0)

    assert clocks.host == 10.0
    assert clocks.now == 10.0 * (QUEUE_LENGTH + 1)


def test_after_waiting_the_host_is_not_ahead():
    """What it launches next begins later than what it waited for ends."""
    clocks = Clocks()
    clocks.launch(MAIN, 1.0, 10.0)
    clocks.synchronize(clocks.of(MAIN))
    clocks.launch(MAIN, 1.0, 10.0)

    assert clocks.now == 22.0


def test_streams_run_side_by_side_until_one_waits():
    """Of two streams the later one counts."""
    clocks = Clocks()
    clocks.launch(MAIN, 1.0, 10.0)
    clocks.launch(SIDE, 1.0, 10.0)
    beside = clocks.now
    clocks.wait(SIDE, clocks.of(MAIN) + 5.0)
    clocks.launch(SIDE, 1.0, 10.0)

    assert beside == 12.0
    assert clocks.of(SIDE) == 26.0


def test_kernels_of_one_operator_are_queued_one_by_one():
    """An operator with as many as the queue takes waits for all before it."""
    clocks = Clocks()
    clocks.launch(MAIN, 0.0, 10.0)
    clocks.launch(MAIN, 0.0, 10.0, QUEUE_LENGTH)
    clocks.launch(MAIN, 0.0, 10.0)

    assert clocks.host == 20.0
