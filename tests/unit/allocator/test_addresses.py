"""At which addresses the driver puts segments."""

from hypothesis import given
from hypothesis import strategies as st

from peaksight.allocator.addresses import DriverAddresses
from peaksight.units import MIB

TOP = 1024 * MIB


def test_ranges_descend():
    """Each segment that fills its range lies below the last."""
    addresses = DriverAddresses(top=TOP)

    assert [addresses(size * MIB) for size in (32, 64, 33)] == [992 * MIB, 928 * MIB, 864 * MIB]


def test_rest_of_a_range_is_used():
    """What a segment leaves of its range serves later ones that fit, lowest address first."""
    addresses = DriverAddresses(top=TOP)
    first, second = addresses(20 * MIB), addresses(20 * MIB)

    assert addresses(2 * MIB) == second + 20 * MIB
    assert addresses(12 * MIB) == first + 20 * MIB
    assert addresses(12 * MIB) == second - 32 * MIB


def test_what_is_given_back_serves_again_lowest_first():
    """As long as another segment is in its range: of ranges on a card, an H200, 2026-11-30."""
    addresses = DriverAddresses(top=TOP)
    large, small, _ = (addresses(size * MIB) for size in (84, 2, 84))
    addresses.release(large, 84 * MIB)

    assert (large, small) == (928 * MIB, 1012 * MIB)
    assert [addresses(size * MIB) for size in (40, 12, 44, 12)] == [928 * MIB, 916 * MIB, 968 * MIB, 800 * MIB]


def test_a_range_that_is_free_is_the_driver_s_again():
    """New ranges lie at the top of the highest room for them."""
    addresses = DriverAddresses(top=TOP)
    first, second, third = (addresses(size * MIB) for size in (60, 60, 60))
    for address in (second, first):
        addresses.release(address, 60 * MIB)

    assert third == 832 * MIB
    assert [addresses(size * MIB) for size in (100, 20, 40)] == [896 * MIB, 996 * MIB, 768 * MIB]


@given(sizes=st.lists(st.integers(1, 200), min_size=1, max_size=40), data=st.data())
def test_segments_do_not_overlap(sizes, data):
    """GIVEN segments that come and go, THEN none lies where another is."""
    addresses, held = DriverAddresses(top=1 << 40), {}
    for size in sizes:
        address = addresses(size * MIB)
        assert all(end <= address or address + size * MIB <= start for start, end in held.items())
        held[address] = address + size * MIB
        if data.draw(st.booleans()):
            released = data.draw(st.sampled_from(sorted(held)))
            addresses.release(released, held.pop(released) - released)
    for start, end in held.items():
        addresses.release(start, end - start)

    assert addresses(1 << 39) == (1 << 40) - (1 << 39)
