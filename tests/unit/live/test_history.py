"""The allocator's history, where it costs nothing."""

from peaksight.live.history_cost import HistoryWhereAffordable
from peaksight.records.watched import WatchedStep


class Switch:
    def __init__(self):
        self.is_on = True

    def resume(self):
        self.is_on = True

    def pause(self):
        self.is_on = False


def states_after(seconds_with, seconds_without, num_steps=30):
    """Whether it is on after each step of a script whose steps take as long as is given."""
    switch = Switch()
    history, said = HistoryWhereAffordable(switch), []
    states = []
    for step in range(1, num_steps + 1):
        seconds = seconds_with if switch.is_on else seconds_without
        said += history.after(WatchedStep(step=step, time=0.0, seconds=seconds, device=0))
        states.append(switch.is_on)
    return states, [kind for kind, _ in said], history, switch


def test_it_stays_on_where_it_costs_nothing():
    """After a look at how it is without."""
    states, said, _, _ = states_after(0.1, 0.1)

    assert states == [True] * 11 + [False] * 8 + [True] * 11
    assert said == []


def test_it_is_switched_off_where_it_costs_time():
    """And on again when there is trouble."""
    states, said, history, switch = states_after(0.11, 0.1)
    assert states == [True] * 11 + [False] * 19
    assert said == ["history-off"]

    history.happened("retry")
    assert switch.is_on
