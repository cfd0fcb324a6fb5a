"""The allocator of XLA."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from peaksight.allocator.bfc import BfcAllocator
from peaksight.units import MIB


def test_sizes_are_rounded_to_256():
    """A byte takes 256."""
    allocator = BfcAllocator(1 << 30)
    allocator.allocate(1)

    assert allocator.in_use_bytes == 256


def test_a_slightly_larger_chunk_is_taken_whole():
    """What would be cut off is under 128 MiB and less than what is wanted."""
    allocator = BfcAllocator(1 << 30)
    first = allocator.allocate(60 * MIB)
    allocator.allocate(MIB)
    allocator.free(first)
    allocator.allocate(40 * MIB)

    assert allocator.in_use_bytes == 61 * MIB


def test_regions_grow_and_keep_what_they_have():
    """Without preallocation there are regions of 2, 4, 8 MiB; what does not fit the rest of one needs the next."""
    allocator = BfcAllocator(1 << 30, preallocates=False)
    allocator.allocate(MIB)
    allocator.allocate(2 * MIB)

    assert allocator.reserved_bytes == (2 + 4) * MIB


def test_one_piece_must_be_free():
    """Free bytes in two pieces do not serve a request for both."""
    allocator = BfcAllocator(3 * MIB)
    pieces = [allocator.allocate(MIB) for _ in range(3)]
    allocator.free(pieces[0])
    allocator.free(pieces[2])

    assert allocator.allocate(2 * MIB) is None
    assert allocator.largest_free_bytes == MIB


@given(st.lists(st.tuples(st.integers(1, 1 << 22), st.booleans()), max_size=60), st.booleans())
def test_all_that_is_freed_can_be_had_again(requests, preallocates):
    """Chunks never overlap, what is in use adds up, and a preallocated pool is one free piece at the end."""
    allocator = BfcAllocator(1 << 28, preallocates=preallocates)
    alive = []
    for size, keep in requests:
        chunk = allocator.allocate(size)
        assert chunk is not None
        assert chunk.bytes >= size
        alive.append(chunk)
        if not keep:
            allocator.free(alive.pop(0))
        ends = sorted((each.address, each.address + each.bytes) for each in alive)
        assert all(end <= start for (_, end), (start, _) in pairwise(ends))
        assert sum(each.bytes for each in alive) == allocator.in_use_bytes
    for chunk in alive:
        allocator.free(chunk)

    assert allocator.in_use_bytes == 0
    assert allocator.largest_free_bytes == (1 << 28 if preallocates else allocator.largest_free_bytes)
