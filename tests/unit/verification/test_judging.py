"""The verdict on a tensor follows from distances that the changed run has no part in."""

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.records.certificate import TensorDifference
from peaksight.verification.judging import MARGIN, is_bitwise, judge

EPS = 2.0**-23
SAME = TensorDifference(
    kind="gradient",
    name="h.0.weight",
    step=1,
    rank=0,
    norm=1.0,
    difference=0.0,
    repeated=0.0,
    resolution=EPS,
    bitwise=True,
    original_error=1e-7,
    changed_error=1e-7,
    exact_difference=0.0,
    original_rounding=1e-7,
    changed_rounding=1e-7,
)
OTHER = replace(SAME, bitwise=False)
POSITIVE = st.floats(min_value=1e-12, max_value=1e3)


def excess_of(each, *others):
    return judge([each, *others])[0].excess


def test_what_has_the_same_bits_is_the_same():
    """Whatever the distances from float64."""
    assert excess_of(replace(SAME, original_error=1.0, changed_error=0.0)) == 0


@pytest.mark.parametrize("exact_difference, is_same", [(5e-8, True), (1e-7, True), (2e-7, False), (1.0, False)])
def test_exact_arithmetic_may_differ_by_the_rounding_of_the_original(exact_difference, is_same):
    """Two float64 runs of the same training differ by far less than one float32 run does."""
    assert is_same == (excess_of(replace(OTHER, exact_difference=exact_difference)) <= 1)


@pytest.mark.parametrize("changed_rounding, is_same", [(1.5e-6, True), (1.7e-6, False), (3e-3, False)])
def test_a_coarser_rounding_is_not_rounding(changed_rounding, is_same):
    """A bfloat16 autocast computes the same in float64, and is 2**16 times coarser."""
    assert is_same == (excess_of(replace(OTHER, changed_rounding=changed_rounding)) <= 1)


def test_the_original_may_not_be_the_coarser_one_either():
    """Else a certificate would depend on which of the two is called the original."""
    assert excess_of(replace(OTHER, original_rounding=3e-3)) > 1


@given(error=POSITIVE, difference=POSITIVE, factor=st.floats(min_value=1, max_value=1e6))
def test_the_changed_run_cannot_loosen_its_tolerance(error, difference, factor):
    """The further the changed run is from float64, the worse for it."""
    near = replace(OTHER, original_error=error, changed_rounding=difference, exact_difference=difference)
    far = replace(near, changed_rounding=difference * factor, exact_difference=difference * factor)

    assert judge([far])[0].tolerance == judge([near])[0].tolerance
    assert judge([far])[0].exact_excess >= judge([near])[0].exact_excess


@given(repeated=POSITIVE)
def test_what_the_original_does_not_repeat_is_tolerated(repeated):
    """The noise floor."""
    noisy = replace(OTHER, repeated=repeated, exact_difference=repeated)

    assert excess_of(noisy) <= 1


def test_luck_of_one_tensor_is_not_its_tolerance():
    """A tensor that float32 happens to hit exactly may differ by what its kind typically does."""
    lucky = replace(OTHER, name="h.1.bias", original_error=0.0, exact_difference=5e-8)

    assert excess_of(lucky, SAME, SAME) <= 1


def test_without_luck_the_tolerance_is_at_least_half_the_spacing():
    """No tensor is held to less than its dtype can say."""
    assert judge([replace(OTHER, original_error=0.0)])[0].tolerance == EPS / 2


def test_counters_have_no_tolerance():
    """`num_batches_tracked` of twice as many is another number."""
    counter = replace(OTHER, kind="buffer", resolution=0.0, original_error=0.0, exact_difference=1.0)

    assert excess_of(counter) == inf


@pytest.mark.parametrize("broken", [{"finite": False}, {"exact_difference": nan}, {"changed_rounding": nan}])
def test_what_is_not_finite_is_not_the_same(broken):
    """NaN compares as nothing, so it must not slip through."""
    assert excess_of(replace(OTHER, **broken)) == inf


def test_without_float64_the_repetition_decides():
    """Which then starts from weights moved by one rounding."""
    alone = replace(OTHER, exact_difference=None, repeated=1e-6)

    assert excess_of(replace(alone, difference=MARGIN * 1e-6)) <= 1
    assert excess_of(replace(alone, difference=MARGIN * 1.1e-6)) > 1


@given(st.lists(st.booleans(), min_size=1))
def test_all_bits_have_to_be_the_same(bits):
    """One tensor is enough for another class."""
    assert all(bits) == is_bitwise(replace(SAME, bitwise=each) for each in bits)


def test_an_optimizer_may_blow_up_the_rounding_of_a_few_numbers():
    """Adam moves a weight by the sign of a gradient of nearly zero: what is judged is a number in the middle."""
    blown_up = replace(OTHER, kind="parameter", original_error=1e-3, exact_difference=1e-9)

    assert excess_of(blown_up) <= 1


def test_after_an_update_luck_counts_for_more():
    """A run whose optimizer took one wrong sign is further from float64 in every number that follows."""
    later = replace(OTHER, step=2, changed_rounding=100e-7)

    assert excess_of(later) <= 1
    assert excess_of(replace(later, step=1)) > 1
    assert excess_of(replace(later, changed_rounding=8192e-7)) > 1
