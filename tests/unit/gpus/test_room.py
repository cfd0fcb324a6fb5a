"""The memory of one card as one process finds it."""

from peaksight.gpus import find_card, room_on
from peaksight.units import GIB

H100 = find_card("h100-80gb")


def test_other_processes_take_their_part():
    """What others reserve is not usable."""
    assert room_on(H100).usable_bytes - room_on(H100, others_bytes=GIB).usable_bytes == GIB
    assert room_on(H100, others_bytes=200 * GIB).usable_bytes == 0
