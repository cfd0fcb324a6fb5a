"""The memory of one card as one process finds it."""

import pytest

from peaksight.gpus import find_card, outside_the_allocator, room_on
from peaksight.units import GIB, MIB

H100 = find_card("h100-80gb")


def test_other_processes_take_their_part():
    """What others reserve is not usable."""
    assert room_on(H100).usable_bytes - room_on(H100, others_bytes=GIB).usable_bytes == GIB
    assert room_on(H100, others_bytes=200 * GIB).usable_bytes == 0


def test_a_measured_context_is_sure():
    """There is nothing to say about it."""
    room = room_on(H100)

    assert room.context_bytes == 518 * MIB
    assert room.surely_usable_bytes == room.usable_bytes == room.possibly_usable_bytes
    assert outside_the_allocator(room) == ()


def test_another_context_lies_on_a_line_with_a_margin():
    """1.8 KiB for each of 40 x 1024 threads and 43 MiB, where error messages of a T4 show 114 MiB."""
    room = room_on(find_card("t4"))
    (context,) = outside_the_allocator(room)

    assert room.context_bytes == 115 * MIB
    assert room.possibly_usable_bytes - room.usable_bytes == room.usable_bytes - room.surely_usable_bytes == 64 * MIB
    assert (context.slug, context.bytes) == ("context-estimated", 115 * MIB)
    assert context.what.endswith("64 MiB")


def test_the_line_goes_through_the_measured_context():
    """The H100's own context is on it."""
    sibling = room_on(find_card("h200"))

    assert abs(sibling.context_bytes - 518 * MIB) < MIB


@pytest.mark.parametrize("name", ["a100-40gb:1g.5gb", "h100-80gb:7g.80gb"])
def test_the_context_of_a_slice_is_less_sure(name):
    """Nobody measured one: twice the margin."""
    assert room_on(find_card(name)).context_margin_bytes == 128 * MIB
