"""How full the card is over a run, and what with."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution.course import NUM_PARTS, NUM_SPANS, course_of, failed_tick, held_at_tick
from peaksight.attribution.levels import Levels
from peaksight.attribution.live_set import live_set
from peaksight.records import Category, CategoryBytes, Phase, PhaseSpan, Role
from peaksight.units import MIB

PARAMETERS = allocation_of(4 * MIB, born=1, role=Role.PARAMETER, module="Net.layers.0", source="train.py:3")


def course(capture, failed=None):
    """The course of `capture`."""
    return course_of(capture, Levels(capture), failed)


def test_a_step_peak_is_divided_by_category():
    """Parameters that stay, and an activation of each step that backward frees."""
    capture = capture_of(
        PARAMETERS,
        allocation_of(2 * MIB, born=2, died=4),
        allocation_of(3 * MIB, born=3, died=5, phase=Phase.BACKWARD, grad_enabled=False),
        allocation_of(8 * MIB, born=6, died=8, step=2),
        steps=(step_of(1, 1, 5, (2,), 9 * MIB), step_of(2, 6, 8, (7,), 12 * MIB)),
    )
    found = course(capture)

    assert found.ticks[-2:] == (3, 6)
    assert (found.steps[-2:], found.phases[-2:]) == ((1, 2), (Phase.BACKWARD, Phase.FORWARD))
    assert held_at_tick(found, 3) == (
        CategoryBytes(category=Category.PARAMETER, bytes=4 * MIB),
        CategoryBytes(category=Category.TEMPORARY, bytes=3 * MIB),
        CategoryBytes(category=Category.ACTIVATION, bytes=2 * MIB),
    )
    assert (found.allocated_bytes[-2:], found.least_allocated_bytes[-2:]) == (
        (9 * MIB, 12 * MIB),
        (4 * MIB, 4 * MIB),
    )


def test_a_step_may_be_fullest_as_it_begins():
    """It allocates nothing that is above what was there: that moment is a part of its own."""
    capture = capture_of(
        allocation_of(4 * MIB, born=1, died=4, role=Role.INPUT),
        allocation_of(1 * MIB, born=2, died=3),
        allocation_of(1 * MIB, born=5, died=6, step=2),
        steps=(step_of(1, 1, 3, (), 5 * MIB), step_of(2, 4, 6, (), 4 * MIB)),
    )
    found = course(capture)

    assert found.ticks == (1, 2, 3, 5)
    assert found.allocated_bytes == (4 * MIB, 5 * MIB, 4 * MIB, 1 * MIB)
    assert (found.steps[2], found.least_allocated_bytes[2]) == (1, 4 * MIB)


def test_layers_hold_together():
    """Places that differ in the number of a layer alone are one; the largest come first."""
    capture = capture_of(
        allocation_of(4 * MIB, born=1, module="Net.layers.0.mlp"),
        allocation_of(4 * MIB, born=2, module="Net.layers.1.mlp"),
        allocation_of(6 * MIB, born=3, module="Net.head", op="aten::mm"),
    )
    found = course(capture)
    last = [(found.places[row.place].module, row.bytes // MIB) for row in found.top[-1]]

    assert last == [("Net.layers.*.mlp", 8), ("Net.head", 6)]
    assert [place.op for place in found.places] == ["aten::empty", "aten::mm"]


def test_spans_are_those_of_phases():
    """Each goes on until the next begins."""
    capture = capture_of(
        PARAMETERS,
        allocation_of(MIB, born=2, died=4),
        allocation_of(MIB, born=3, died=7, phase=Phase.BACKWARD),
        allocation_of(MIB, born=6, died=8, step=2),
    )

    assert course(capture).spans == (
        PhaseSpan(first_tick=1, last_tick=2, step=1, phase=Phase.FORWARD),
        PhaseSpan(first_tick=3, last_tick=5, step=1, phase=Phase.BACKWARD),
        PhaseSpan(first_tick=6, last_tick=8, step=2, phase=Phase.FORWARD),
    )


def test_the_shortest_spans_are_left_out():
    """One birth in a thousand short phases, among a hundred of a long one."""
    phases = [Phase.OPTIMIZER, *[Phase.FORWARD] * 100, *[Phase.OTHER, Phase.BACKWARD] * 500, *[Phase.FORWARD] * 100]
    births = [allocation_of(512, born=tick, phase=phase) for tick, phase in enumerate(phases, start=1)]
    spans = course(capture_of(*births)).spans

    assert len(spans) <= NUM_SPANS
    assert (spans[0].phase, spans[1].first_tick) == (Phase.OPTIMIZER, 2)
    assert (spans[-1].first_tick, spans[-1].last_tick) == (1102, 1201)
    assert all(before.last_tick + 1 == after.first_tick for before, after in pairwise(spans))


def test_nothing_allocated_has_no_course():
    """There is nothing to draw."""
    assert course(capture_of()) is None


def test_a_failure_is_found_in_the_run_without_a_limit():
    """That has other ticks: an operator did without a block on the full card, and a block was freed in between."""
    limited = capture_of(
        PARAMETERS, allocation_of(MIB, born=2, died=3), failures=(failure_of(9 * MIB, tick=4),), fatal=0
    )
    whole = capture_of(
        PARAMETERS,
        allocation_of(8 * MIB, born=2, died=3, dispensable=True),
        allocation_of(MIB, born=4, died=5),
        allocation_of(9 * MIB, born=7),
        allocation_of(9 * MIB, born=8),
    )

    assert failed_tick(limited, whole) == 7
    assert failed_tick(limited, None) == 4
    assert failed_tick(whole, None) is None


@pytest.mark.parametrize("sizes", [(4, 2, 9), (4, 1), (4,), ()])
def test_a_failure_has_no_place_in_another_run(sizes):
    """One that allocated something else before, or nothing after."""
    limited = capture_of(PARAMETERS, allocation_of(MIB, born=2), failures=(failure_of(9 * MIB, tick=2),), fatal=0)
    whole = capture_of(*(allocation_of(size * MIB, born=tick) for tick, size in enumerate(sizes, start=1)))

    assert failed_tick(limited, whole) is None


@st.composite
def captures(draw):
    """Steps of blocks that die in any order: at every tick something is born, or dies."""
    lives = draw(st.lists(st.integers(0, 40), min_size=1, max_size=900))
    sizes = draw(st.randoms(use_true_random=False))
    deaths, births, tick = [], [], 0
    for life in lives:
        for _ in range(sum(due <= len(births) for due, _ in deaths[:3])):
            tick += 1
            births[deaths.pop(0)[1]]["died"] = tick
        tick += 1
        deaths = sorted([*deaths, (len(births) + life, len(births))])
        births.append({"num_bytes": sizes.randint(1, 64) * MIB, "born": tick})
    cuts = sorted({*draw(st.lists(st.integers(1, tick), max_size=4)), tick})
    blocks = [allocation_of(module=f"Net.{birth['num_bytes'] % 7}.x", **birth) for birth in births]
    return capture_of(*blocks, steps=steps_between(cuts, Levels(capture_of(*blocks)).bytes))


def steps_between(cuts, levels):
    """Steps that end at the ticks `cuts`; the peak of one is no less than what was there when it began."""
    firsts = [1, *(cut + 1 for cut in cuts[:-1])]
    for number, (first, last) in enumerate(zip(firsts, cuts, strict=True), start=1):
        yield step_of(number, first, last, peak_allocated_bytes=max(levels[max(0, first - 2) : last]))


@given(captures())
def test_a_course_adds_up(capture):
    """At each part the categories are what is alive, the peaks are among the ticks, and these are few."""
    found = course(capture)
    sums = tuple(map(sum, zip(*(column.bytes for column in found.held), strict=True)))

    assert list(found.ticks) == sorted(set(found.ticks))
    assert len(found.ticks) <= NUM_PARTS + 2 * len(capture.steps) + 1
    assert sums == found.allocated_bytes
    assert all(least <= most for least, most in zip(found.least_allocated_bytes, found.allocated_bytes, strict=True))
    assert max(found.allocated_bytes) == capture.peak_allocated_bytes
    assert capture.peak_tick == found.peak_tick
    assert {found.peak_tick, *map(Levels(capture).peak_tick, capture.steps)} <= set(found.ticks)
    assert min(found.least_allocated_bytes) == min(Levels(capture).bytes)
    for step in capture.steps:
        held = held_at_tick(found, Levels(capture).peak_tick(step))
        assert sum(each.bytes for each in held) == step.peak_allocated_bytes


@given(captures(), st.data())
def test_the_top_of_a_part_is_of_what_is_alive(capture, data):
    """It is the largest of the rows of the live set, layers folded."""
    found = course(capture)
    part = data.draw(st.integers(0, len(found.ticks) - 1))
    alive = live_set(capture, found.ticks[part])
    top = [row.bytes for row in found.top[part]]

    assert sum(row.bytes for row in alive) == found.allocated_bytes[part]
    assert top == sorted(top, reverse=True)
    assert sum(top) == found.allocated_bytes[part]
