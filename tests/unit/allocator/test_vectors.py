"""Allocated and reserved bytes of short sequences, worked out by hand from the C++ source.

The first three agree with PyTorch's own example of expandable segments.
"""

import pytest

from peaksight.allocator import CachingAllocator, Settings
from peaksight.units import KIB, MIB


def allocate(allocator, num_blocks, nbytes):
    return [allocator.malloc(int(nbytes)) for _ in range(num_blocks)]


def free_all(allocator, blocks):
    for block in blocks:
        allocator.free(block)


def equal_blocks(allocator):
    allocate(allocator, 8, 16 * MIB)


def larger_after_smaller(allocator):
    free_all(allocator, allocate(allocator, 8, 16 * MIB))
    allocate(allocator, 4, 32 * MIB)


def small_after_large(allocator):
    free_all(allocator, allocate(allocator, 1, 2 * MIB))
    allocate(allocator, 1, 512 * KIB)


def smaller_after_larger(allocator):
    free_all(allocator, allocate(allocator, 4, 32 * MIB))
    allocate(allocator, 8, 16 * MIB)


def two_gaps(allocator):
    blocks = allocate(allocator, 4, 16 * MIB)
    free_all(allocator, [blocks[0], blocks[2]])
    allocate(allocator, 1, 32 * MIB)


def around_one_mib(allocator):
    for nbytes in (1, MIB, MIB + 1):
        allocator.malloc(nbytes)


def one_of(nbytes):
    return lambda allocator: allocate(allocator, 1, nbytes)


def two_of(nbytes):
    return lambda allocator: allocate(allocator, 2, nbytes)


# Sequence; allocated and reserved bytes with classic segments; the same with expandable segments.
VECTORS = {
    "8 x 16 MiB": (equal_blocks, (128 * MIB, 128 * MIB), (128 * MIB, 140 * MIB)),
    "4 x 32 MiB after 8 x 16": (larger_after_smaller, (128 * MIB, 256 * MIB), (128 * MIB, 140 * MIB)),
    "0.5 MiB after 2": (small_after_large, (512 * KIB, 22 * MIB), (512 * KIB, 22 * MIB)),
    "8 x 16 MiB after 4 x 32": (smaller_after_larger, (128 * MIB, 128 * MIB), (128 * MIB, 140 * MIB)),
    "32 MiB beside two gaps of 16": (two_gaps, (64 * MIB, 96 * MIB), (64 * MIB, 100 * MIB)),
    "1 B, 1 MiB, 1 MiB + 1 B": (around_one_mib, (2 * MIB + 1024, 22 * MIB), (2 * MIB + 1024, 22 * MIB)),
    "11.5 MiB": (one_of(11.5 * MIB), (12 * MIB, 12 * MIB), (11.5 * MIB, 20 * MIB)),
    "10.5 MiB": (one_of(10.5 * MIB), (10.5 * MIB, 12 * MIB), (10.5 * MIB, 20 * MIB)),
    "10 MiB - 512 B": (one_of(10 * MIB - 512), (10 * MIB - 512, 20 * MIB), (10 * MIB - 512, 20 * MIB)),
    "cuBLAS workspaces before sm90": (two_of(8519680), (16.25 * MIB, 20 * MIB), (16.25 * MIB, 20 * MIB)),
    "cuBLAS workspaces of sm90": (two_of(32 * MIB), (64 * MIB, 64 * MIB), (64 * MIB, 80 * MIB)),
}


@pytest.mark.parametrize(("sequence", "classic", "expandable"), VECTORS.values(), ids=VECTORS)
def test_vectors(sequence, classic, expandable):
    """Allocated and reserved bytes are those of the C++ allocator, with both kinds of segments."""
    for expandable_segments, expected in ((False, classic), (True, expandable)):
        allocator = CachingAllocator(settings=Settings(expandable_segments=expandable_segments))
        sequence(allocator)

        assert (allocator.allocated_bytes, allocator.reserved_bytes) == expected
