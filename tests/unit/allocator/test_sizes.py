"""How a request becomes a block size, and a block size a segment size."""

import pytest

from peaksight.allocator.sizes import get_allocation_size, round_size
from peaksight.units import MIB


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
