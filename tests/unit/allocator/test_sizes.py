"""How a request becomes a block size, and a block size a segment size."""

import pytest

from peaksight.allocator.sizes import get_allocation_size, round_size, roundup_power2
from peaksight.units import KIB, MIB


@pytest.mark.parametrize(("nbytes", "size"), [(1, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)])
def test_round_size(nbytes, size):
    """A block is a multiple of 512 bytes."""
    assert round_size(nbytes) == size


@pytest.mark.parametrize(
    ("size", "segment_size"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
    ],
)
def test_get_allocation_size(size, segment_size):
    """Small blocks share 2 MiB, middle ones 20 MiB, and large ones get a segment in steps of 2 MiB."""
    assert get_allocation_size(size) == segment_size


def test_size_of_large_segments():
    """`large_segment_size_mb` is the segment of middle sizes only."""
    sizes = (MIB, 2 * MIB, 10 * MIB)

    assert [get_allocation_size(size, 40 * MIB) for size in sizes] == [2 * MIB, 40 * MIB, 10 * MIB]


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (1200, 1536),  # not above 512 bytes a division: as without
        (2 * KIB + 1, 2560),
        (1200 * KIB, 1280 * KIB),  # PyTorch's own example: 1200 with 4 divisions
        (MIB, MIB),
        (64 * MIB, 64 * MIB),
        (65 * MIB, 80 * MIB),
        (80 * MIB + 1, 96 * MIB),
        (127 * MIB, 128 * MIB),
    ],
)
def test_roundup_power2(nbytes, size):
    """With 4 divisions, sizes between two powers of 2 are the quarters between them."""
    assert roundup_power2((4,) * 16, nbytes) == size


def test_intervals_of_roundup_power2():
    """Each power of 2 has its division; the first also serves smaller sizes, the last larger ones."""
    divisions = (2, 0, 1, 8, *[0] * 11, 2)
    requests = (5 * KIB, 3 * MIB + 1, 5 * MIB + 1, 9 * MIB + 1, (33 << 30) + 1, (129 << 30) + 1)

    assert [roundup_power2(divisions, nbytes) for nbytes in requests] == [
        6 * KIB,
        3 * MIB + 512,
        5 * MIB + 512,
        10 * MIB,
        48 << 30,
        192 << 30,
    ]
