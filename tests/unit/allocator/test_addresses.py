"""At which addresses the driver puts segments."""

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
