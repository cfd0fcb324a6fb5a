"""What the peak would be without some blocks."""

from hypothesis import given
from hypothesis import strategies as st

from peaksight.diagnosis.lifetimes import Lifetimes
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of


@st.composite
def runs(draw):
    """Some allocations with different ticks for births and deaths, and a place for each in or out of a set."""
    count = draw(st.integers(1, 8))
    ticks = draw(st.permutations(range(1, 2 * count + 1)))
    pairs = [sorted(ticks[2 * place : 2 * place + 2]) for place in range(count)]
    allocations = [
        allocation_of(draw(st.integers(1, 9)) * MIB, born=born, died=draw(st.sampled_from([died, None])))
        for born, died in sorted(pairs)
    ]
    return allocations, draw(st.lists(st.booleans(), min_size=count, max_size=count))


@given(runs())
def test_without_is_the_peak_of_a_run_that_never_made_them(run):
    """The remaining allocations by themselves have that peak."""
    allocations, chosen = run
    capture = capture_of(*allocations)
    removed = [a for a, is_chosen in zip(capture.allocations, chosen, strict=True) if is_chosen]
    left = [a for a in capture.allocations if a not in removed]

    assert Lifetimes(capture).without(removed) == max(_alive_bytes(left, a.born) for a in capture.allocations)


@given(runs(), st.integers(1, 16))
def test_earlier_frees_only_ever_lower_the_peak(run, tick):
    """To the peak of the allocations with those lifetimes."""
    allocations, chosen = run
    capture = capture_of(*allocations)
    frees = {a: max(tick, a.born + 1) for a, is_chosen in zip(capture.allocations, chosen, strict=True) if is_chosen}
    peak = Lifetimes(capture).with_earlier_frees(frees)

    assert peak <= Lifetimes(capture).peak_bytes
    assert peak == max(
        sum(a.allocated_bytes for a in capture.allocations if a.born <= at < _end(a, frees))
        for at in (each.born for each in capture.allocations)
    )


def test_the_peak_is_that_of_the_capture():
    """Before anything is taken away."""
    capture = capture_of(
        allocation_of(3 * MIB, born=1, died=3), allocation_of(2 * MIB, born=2, died=4), allocation_of(4 * MIB, born=5)
    )

    assert Lifetimes(capture).peak_bytes == capture.peak_allocated_bytes == 5 * MIB


def _alive_bytes(allocations, tick):
    return sum(a.allocated_bytes for a in allocations if a.born <= tick < (a.died or 10**9))


def _end(allocation, frees):
    return min(frees.get(allocation, 10**9), allocation.died or 10**9)
