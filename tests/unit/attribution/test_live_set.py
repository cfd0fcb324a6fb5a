"""The live set adds up to the peak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, step_of
from peaksight.attribution import live_at_peak
from peaksight.records import Category, Role
from peaksight.units import MIB


def test_like_allocations_share_a_row():
    """Two weights of one module on one line are one holder of two blocks."""
    weight = {"role": Role.PARAMETER, "module": "Net.fc"}
    capture = capture_of(
        allocation_of(4 * MIB, born=1, **weight),
        allocation_of(4 * MIB, born=2, **weight),
        allocation_of(2 * MIB, born=3, died=5, module="Net.act"),
        steps=[step_of(1, 1, 5, [4])],
    )

    weights, activation = live_at_peak(capture)
    assert (weights.bytes, weights.count, weights.category) == (8 * MIB, 2, Category.PARAMETER)
    assert (activation.bytes, activation.module, activation.category) == (2 * MIB, "Net.act", Category.ACTIVATION)


def test_tensors_of_another_shape_have_rows_of_their_own():
    """Weight and bias of one module are two holders, and both say what they are."""
    parts = {"float32[1024, 1024]": 4 * MIB, "float32[1024]": MIB}
    capture = capture_of(
        *(allocation_of(size, born=born, tensor=tensor) for born, (tensor, size) in enumerate(parts.items(), start=1))
    )

    assert {holder.tensor: holder.bytes for holder in live_at_peak(capture)} == parts


def test_only_what_is_alive_at_the_peak_counts():
    """Blocks freed before the peak, and blocks born after it, are not in the live set."""
    capture = capture_of(
        allocation_of(2 * MIB, born=1, died=2, module="before"),
        allocation_of(6 * MIB, born=3, died=4, module="peak"),
        allocation_of(2 * MIB, born=5, module="after"),
    )

    assert [holder.module for holder in live_at_peak(capture)] == ["peak"]


def test_a_script_without_device_memory_has_an_empty_live_set():
    """Nothing allocated, nothing alive: an empty tuple, which is what was found."""
    assert live_at_peak(capture_of()) == ()


def test_a_capture_that_does_not_add_up_is_our_own_mistake():
    """The rows and the peak come from one ledger."""
    capture = capture_of(allocation_of(MIB, born=1), peak_allocated_bytes=MIB + 1)

    with pytest.raises(AssertionError, match="add up"):
        live_at_peak(capture)


@st.composite
def lifetimes(draw):
    """Allocations with distinct ticks and lives of any overlap."""
    ticks = draw(st.permutations(range(1, 41)))
    pairs = [tuple(sorted(ticks[i : i + 2])) for i in range(0, 40, 2)]
    sizes = draw(st.lists(st.integers(1, 64 * MIB), min_size=20, max_size=20))
    roles = draw(st.lists(st.sampled_from(Role), min_size=20, max_size=20))
    return sorted(
        (
            allocation_of(size, born=born, died=died, role=role, module=role)
            for (born, died), size, role in zip(pairs, sizes, roles, strict=True)
        ),
        key=lambda allocation: allocation.born,
    )


@given(lifetimes())
def test_rows_add_up_for_any_lifetimes(allocations):
    """The sum over the rows is the peak to the byte, largest row first."""
    capture = capture_of(*allocations)

    sizes = [holder.bytes for holder in live_at_peak(capture)]
    assert sum(sizes) == capture.peak_allocated_bytes
    assert sizes == sorted(sizes, reverse=True)
