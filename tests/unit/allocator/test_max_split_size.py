"""Oversize blocks: max_split_size_mb and max_non_split_rounding_mb."""

import pytest

from peaksight.allocator import CachingAllocator, DeviceOutOfMemory, Settings
from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.units import MIB


def allocator_with(max_split_mb, limit_mb=None, **settings):
    """An allocator that splits no block of `max_split_mb` or more."""
    return CachingAllocator(
        limit_bytes=None if limit_mb is None else limit_mb * MIB + KEPT_BY_DRIVER,
        settings=Settings(max_split_size_bytes=max_split_mb * MIB, **settings),
    )


def cache(allocator, *sizes_mb, stream=0):
    """Leave free segments of these sizes."""
    blocks = [allocator.malloc(mb * MIB, stream) for mb in sizes_mb]
    for block in blocks:
        allocator.free(block)


def test_oversize_blocks_serve_no_smaller_request():
    """A request below the limit gets a segment of its own rather than a part of an oversize block."""
    allocator = allocator_with(40)
    cache(allocator, 40)
    allocator.malloc(30 * MIB)

    assert allocator.reserved_bytes == 70 * MIB


def test_blocks_below_the_limit_are_split():
    """As without one."""
    allocator = allocator_with(40)
    cache(allocator, 38)
    allocator.malloc(20 * MIB)

    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (20 * MIB, 38 * MIB)


def test_oversize_blocks_stay_whole():
    """An oversize request takes a larger block whole, and it counts as allocated."""
    allocator = allocator_with(40)
    cache(allocator, 58)
    allocator.malloc(40 * MIB)

    assert (allocator.allocated_bytes, allocator.reserved_bytes) == (58 * MIB, 58 * MIB)


@pytest.mark.parametrize(("rounding_mb", "reserved_mb"), [(20, 100), (21, 60)])
def test_rounding_of_oversize_blocks(rounding_mb, reserved_mb):
    """But not one that is larger by max_non_split_rounding_mb or more."""
    allocator = allocator_with(40, max_non_split_rounding_bytes=rounding_mb * MIB)
    cache(allocator, 60)
    allocator.malloc(40 * MIB)

    assert allocator.reserved_bytes == reserved_mb * MIB


def test_only_the_best_fit_is_looked_at():
    """A rejected best fit is not followed by the next one."""
    allocator = CachingAllocator(settings=Settings())
    cache(allocator, 30, 34)
    allocator.apply(Settings(max_split_size_bytes=32 * MIB))
    allocator.malloc(31 * MIB)

    assert allocator.reserved_bytes == 96 * MIB


def test_one_oversize_block_is_released_first():
    """At the limit, one large enough goes, and the others stay cached."""
    allocator = allocator_with(40, limit_mb=200)
    cache(allocator, 60, 100)
    allocator.malloc(30 * MIB)
    allocator.malloc(30 * MIB)
    stats = allocator.memory_stats()

    assert allocator.reserved_bytes == 160 * MIB
    assert (stats["num_device_free"], stats["num_alloc_retries"], stats["num_sync_all_streams"]) == (1, 0, 0)


def test_several_oversize_blocks_are_released():
    """Where none is large enough, they go from the largest down until their sum is."""
    allocator = allocator_with(40, limit_mb=200)
    cache(allocator, 50, 60, 70)
    allocator.malloc(110 * MIB)
    stats = allocator.memory_stats()

    assert allocator.reserved_bytes == 160 * MIB
    assert (stats["num_device_free"], stats["num_alloc_retries"]) == (2, 0)


def test_too_few_oversize_blocks():
    """Where all of them are not enough, everything else is released too."""
    allocator = allocator_with(40, limit_mb=200)
    cache(allocator, 30, 38, 60)
    allocator.malloc(190 * MIB)
    stats = allocator.memory_stats()

    assert allocator.reserved_bytes == 190 * MIB
    assert (stats["num_device_free"], stats["num_alloc_retries"]) == (3, 1)


def test_oversize_blocks_of_other_streams_stay():
    """What is released first is of the stream that asks."""
    allocator = allocator_with(40, limit_mb=200)
    cache(allocator, 100, stream=1)
    cache(allocator, 45, 45)
    allocator.malloc(80 * MIB)

    assert sorted((segment.stream, segment.total_size) for segment in allocator.segments()) == [
        (0, 80 * MIB),
        (1, 100 * MIB),
    ]
    assert allocator.memory_stats()["num_alloc_retries"] == 0


def test_statistics():
    """Oversize blocks and segments are counted, and the limit is told."""
    allocator = allocator_with(40)
    kept = allocator.malloc(40 * MIB)
    cache(allocator, 50, 38)
    stats = allocator.memory_stats()

    assert stats["max_split_size"] == 40 * MIB
    assert (stats["oversize_allocations.current"], stats["oversize_allocations.peak"]) == (1, 2)
    assert (stats["oversize_segments.current"], stats["oversize_segments.peak"]) == (2, 2)

    allocator.free(kept)
    allocator.empty_cache()
    stats = allocator.memory_stats()

    assert stats["oversize_allocations.current"] == stats["oversize_segments.current"] == 0
    assert stats["oversize_segments.freed"] == 2


def test_out_of_memory_releases_everything():
    """Nothing that could be released is left when an error is raised."""
    allocator = allocator_with(40, limit_mb=100)
    cache(allocator, 30, 50)
    with pytest.raises(DeviceOutOfMemory) as caught:
        allocator.malloc(120 * MIB)

    assert caught.value.reserved_bytes == 0


def test_with_expandable_segments():
    """Free memory of an expandable segment is oversize too, but the end of it grows and serves all the same."""
    allocator = allocator_with(40, expandable_segments=True)
    cache(allocator, 60)
    block = allocator.malloc(30 * MIB)

    assert (block.size, allocator.reserved_bytes) == (30 * MIB, 60 * MIB)


def test_pages_are_no_oversize_segments():
    """At the limit, pages are released with everything else and not before."""
    allocator = allocator_with(40, limit_mb=150, expandable_segments=True)
    first = allocator.malloc(100 * MIB)
    allocator.malloc(20 * MIB)
    allocator.free(first)
    allocator.malloc(45 * MIB)
    stats = allocator.memory_stats()

    assert (allocator.reserved_bytes, stats["num_alloc_retries"]) == (80 * MIB, 1)
    assert stats["oversize_segments.allocated"] == 0
