"""garbage_collection_threshold."""

from peaksight.allocator import CachingAllocator, Settings
from peaksight.units import MIB


def allocator_with(threshold=0.5, fraction=0.5, **settings):
    """An allocator that may reserve 200 MiB with the default fraction, and collects garbage above 100 MiB."""
    return CachingAllocator(
        total_bytes=400 * MIB,
        settings=Settings(garbage_collection_threshold=threshold, per_process_memory_fraction=fraction, **settings),
    )


def cache(allocator, *sizes_mb):
    """Free one block after the other, each of them searched for before the next is freed."""
    blocks = [allocator.malloc(mb * MIB) for mb in sizes_mb]
    for block in blocks:
        allocator.free(block)
        allocator.free(allocator.malloc(100))


def reserved_mb(allocator):
    """The sizes of the large segments."""
    return sorted(segment.total_size // MIB for segment in allocator.segments() if segment.pool == "large")


def touch(allocator, mb, times):
    """Use a cached block again and again, which ages the others."""
    for _ in range(times):
        allocator.free(allocator.malloc(mb * MIB))


def test_old_segments_are_released():
    """Above the threshold, a miss releases what is at least as old as the average."""
    allocator = allocator_with()
    blocks = [allocator.malloc(mb * MIB) for mb in (40, 50)]
    for block in blocks:
        allocator.free(block)
    touch(allocator, 40, times=5)
    allocator.malloc(52 * MIB)  # below the threshold: 90 MiB are reserved

    assert reserved_mb(allocator) == [40, 50, 52]

    allocator.malloc(54 * MIB)
    stats = allocator.memory_stats()

    assert reserved_mb(allocator) == [40, 52, 54]
    assert (stats["num_device_free"], stats["num_alloc_retries"], stats["num_sync_all_streams"]) == (1, 0, 0)


def test_rounds_go_on_until_enough_is_released():
    """Where the oldest are not enough, those at least as old as the new average follow."""
    allocator = allocator_with()
    blocks = [allocator.malloc(mb * MIB) for mb in (30, 40, 110)]
    allocator.free(blocks[0])
    touch(allocator, 30, times=3)
    allocator.free(blocks[1])
    touch(allocator, 30, times=3)
    allocator.malloc(44 * MIB)

    assert reserved_mb(allocator) == [44, 110]


def test_split_segments_stay():
    """A segment that is partly in use can't be released."""
    allocator = allocator_with()
    first, second = allocator.malloc(60 * MIB), allocator.malloc(50 * MIB)
    allocator.free(first)
    allocator.malloc(30 * MIB)
    allocator.malloc(34 * MIB)

    assert reserved_mb(allocator) == [34, 50, 60]
    assert second.size == 50 * MIB


def test_small_segments_stay():
    """Only the large pool is collected."""
    allocator = allocator_with()
    small = [allocator.malloc(MIB) for _ in range(2)]
    for block in small:
        allocator.free(block)
    allocator.malloc(100 * MIB)
    allocator.malloc(30 * MIB)

    assert [segment.total_size for segment in allocator.segments() if segment.pool == "small"] == [2 * MIB]


def test_expandable_segments_stay():
    """Their pages are left to the release at the limit."""
    allocator = allocator_with(expandable_segments=True)
    kept = allocator.malloc(20 * MIB)
    allocator.free(allocator.malloc(100 * MIB))
    allocator.malloc(20 * MIB, stream=1)

    assert allocator.reserved_bytes == 140 * MIB
    assert kept.size == 20 * MIB


def test_without_a_fraction_nothing_is_collected():
    """The threshold is a part of what the process is allowed."""
    allocator = allocator_with(fraction=1.0)
    allocator.free(allocator.malloc(150 * MIB))
    allocator.malloc(160 * MIB)

    assert reserved_mb(allocator) == [150, 160]


def test_fraction_while_running():
    """A fraction that comes later makes the threshold count."""
    allocator = allocator_with(fraction=1.0)
    allocator.free(allocator.malloc(150 * MIB))
    allocator.set_memory_fraction(0.9)
    touch(allocator, 150, times=1)
    allocator.set_memory_fraction(0.5)
    allocator.malloc(160 * MIB)

    assert reserved_mb(allocator) == [160]
    assert allocator.memory_stats()["num_alloc_retries"] == 0
