"""Segments that grow by pages."""

import pytest

from peaksight.allocator import CachingAllocator, DeviceOutOfMemory, Settings
from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.units import MIB


def expandable(**options):
    return CachingAllocator(settings=Settings(expandable_segments=True), **options)


def test_grows_by_the_deficit():
    """A free tail is used too, so only the missing pages are mapped."""
    allocator = expandable()
    allocator.malloc(15 * MIB)
    allocator.malloc(30 * MIB)

    assert allocator.reserved_bytes == 60 * MIB
    assert len(allocator.segments()) == 1


def test_unmaps_only_whole_free_pages():
    """Releasing gives back the pages inside a free block, not those that it shares."""
    allocator = expandable()
    kept = allocator.malloc(25 * MIB)
    freed = allocator.malloc(50 * MIB)
    allocator.free(freed)

    assert allocator.release_cached_blocks() == 40 * MIB
    assert allocator.reserved_bytes == 40 * MIB
    assert kept.next is not None
    assert kept.next.size == 15 * MIB


def test_fills_unmapped_gap_first():
    """Pages unmapped in front are mapped again before the segment grows at its end."""
    allocator = expandable()
    front, behind = allocator.malloc(40 * MIB), allocator.malloc(40 * MIB)
    address = front.address
    allocator.free(front)
    allocator.empty_cache()

    assert [segment.address for segment in allocator.segments()] == [behind.address]

    assert allocator.malloc(40 * MIB).address == address
    assert allocator.reserved_bytes == 80 * MIB


def test_empty_segment_disappears():
    """When its last page is unmapped, the segment is gone, and another can follow."""
    allocator = expandable()
    allocator.free(allocator.malloc(30 * MIB))
    allocator.empty_cache()

    assert allocator.segments() == []

    allocator.malloc(30 * MIB)

    assert allocator.reserved_bytes == 40 * MIB


def test_best_fit_keeps_the_end_free():
    """A block that can grow counts as large as it can become, so a gap that fits is taken first."""
    allocator = expandable()
    gap = allocator.malloc(10 * MIB)
    allocator.malloc(5 * MIB)
    address = gap.address
    allocator.free(gap)

    assert allocator.malloc(4 * MIB).address == address


def test_streams_have_their_own_segments():
    """Every stream grows a segment of its own."""
    allocator = expandable()
    allocator.malloc(5 * MIB, stream=0)
    allocator.malloc(5 * MIB, stream=1)

    assert sorted(segment.stream for segment in allocator.segments()) == [0, 1]
    assert allocator.reserved_bytes == 40 * MIB


def test_retry_unmaps_pages():
    """At the limit, free pages of one pool are given to the other."""
    allocator = expandable(limit_bytes=40 * MIB + KEPT_BY_DRIVER)
    allocator.free(allocator.malloc(40 * MIB))
    allocator.malloc(100)

    assert allocator.reserved_bytes == 2 * MIB
    assert allocator.memory_stats()["num_alloc_retries"] == 1


def test_out_of_memory():
    """No page is mapped beyond the limit."""
    allocator = expandable(limit_bytes=40 * MIB + KEPT_BY_DRIVER)
    allocator.malloc(30 * MIB)
    with pytest.raises(DeviceOutOfMemory):
        allocator.malloc(20 * MIB)

    assert allocator.reserved_bytes == 40 * MIB
