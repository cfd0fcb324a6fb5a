"""What categories hold over the run."""

from hypothesis import given
from hypothesis import strategies as st

from peaksight.attribution.series import NUM_POINTS, Series
from peaksight.records import Category, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def test_a_step_peak_is_divided_by_category():
    """Parameters that stay, and an activation of each step that backward frees."""
    capture = capture_of(
        allocation_of(4 * MIB, born=1, role=Role.PARAMETER),
        allocation_of(2 * MIB, born=2, died=4),
        allocation_of(3 * MIB, born=3, died=5, phase=Phase.BACKWARD, grad_enabled=False),
        allocation_of(8 * MIB, born=6, died=8, step=2),
        steps=(step_of(1, 1, 5, (2,), 9 * MIB), step_of(2, 6, 8, (7,), 12 * MIB)),
    )
    first, second = Series(capture).at_peaks(capture.steps)

    assert {row.category: row.bytes // MIB for row in first} == {
        Category.PARAMETER: 4,
        Category.TEMPORARY: 3,
        Category.ACTIVATION: 2,
    }
    assert [(row.category, row.bytes // MIB) for row in second] == [(Category.ACTIVATION, 8), (Category.PARAMETER, 4)]


def test_a_step_may_peak_as_it_begins():
    """It allocates nothing that is above what was there."""
    capture = capture_of(
        allocation_of(4 * MIB, born=1, died=2, role=Role.INPUT),
        allocation_of(1 * MIB, born=3, died=4, step=2),
        steps=(step_of(1, 1, 1, (), 4 * MIB), step_of(2, 2, 4, (), 4 * MIB)),
    )

    assert [sum(row.bytes for row in held) for held in Series(capture).at_peaks(capture.steps)] == [4 * MIB, 4 * MIB]


@given(st.lists(st.integers(1, 64), min_size=1, max_size=700))
def test_points_have_the_peak_and_are_few(sizes):
    """Each allocation dies as the one after the next is born."""
    capture = capture_of(
        *(allocation_of(size * MIB, born=2 * place + 1, died=2 * place + 4) for place, size in enumerate(sizes))
    )
    points = Series(capture).points()
    totals = [sum(row.bytes for row in point.held) for point in points]

    assert len(points) <= NUM_POINTS
    assert [point.tick for point in points] == sorted(point.tick for point in points)
    assert max(totals) == capture.peak_allocated_bytes
