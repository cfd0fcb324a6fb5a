"""When a step ends, for one optimizer and for several."""

from peaksight.overlays.passes import Passes


class Optimizer:
    """One with a parameter of a shape of its own."""

    def __init__(self, *shape):
        parameter = type("Parameter", (), {"shape": shape})()
        self.param_groups = [{"params": [parameter]}]


def test_one_optimizer_ends_each_pass():
    passes, only = Passes(), Optimizer(1)

    assert [True] * 3 == [passes.ended_by(only) for _ in range(3)]


def test_a_second_one_that_comes_later_is_waited_for_from_then_on():
    passes, first, second = Passes(), Optimizer(1), Optimizer(2)
    order = [first, first, second, first, second, first, second]

    assert [True, True, False, True, False, True, False] == [passes.ended_by(each) for each in order]


def test_a_pass_that_was_cut_short_is_forgotten():
    passes, first, second = Passes(), Optimizer(1), Optimizer(2)
    passes.ended_by(first)
    passes.ended_by(second)
    passes.begin_anew()

    assert passes.ended_by(second)
