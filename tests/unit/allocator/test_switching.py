"""Settings that change while blocks are held, and large_segment_size_mb."""

from peaksight.allocator import CachingAllocator, Settings
from peaksight.units import MIB

EXPANDABLE = Settings(expandable_segments=True)


def test_classic_blocks_serve_expandable_requests():
    """A cached classic segment is used, and split down to 512 bytes."""
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(30 * MIB))
    allocator.apply(EXPANDABLE)
    block = allocator.malloc(30 * MIB - 512)

    assert (block.size, allocator.reserved_bytes) == (30 * MIB - 512, 30 * MIB)
    assert allocator.memory_stats()["inactive_split_bytes.all.current"] == 512


def test_new_memory_is_expandable():
    """Old segments stay as they are; what is missing is mapped."""
    allocator = CachingAllocator()
    allocator.malloc(30 * MIB)
    allocator.apply(EXPANDABLE)
    allocator.malloc(30 * MIB)

    assert sorted(segment.total_size for segment in allocator.segments()) == [30 * MIB, 40 * MIB]


def test_classic_requests_pass_expandable_blocks_over():
    """Even where they fit better."""
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(50 * MIB))
    allocator.apply(EXPANDABLE)
    held = allocator.malloc(45 * MIB)
    allocator.free(allocator.malloc(20 * MIB))
    allocator.free(held)
    allocator.malloc(5 * MIB, stream=1)
    allocator.apply(Settings())
    allocator.malloc(20 * MIB)

    assert allocator.memory_stats()["segment.all.current"] == 1
    assert allocator.reserved_bytes == 50 * MIB + 20 * MIB + 20 * MIB


def test_no_classic_block():
    """Where only expandable blocks are free, a classic segment is made."""
    allocator = CachingAllocator(settings=EXPANDABLE)
    allocator.free(allocator.malloc(40 * MIB))
    allocator.apply(Settings())
    allocator.malloc(40 * MIB)

    assert allocator.reserved_bytes == 80 * MIB
    assert allocator.memory_stats()["segment.all.current"] == 1


def test_emptying_the_cache_releases_both_kinds():
    """Unsplit classic segments and free pages."""
    allocator = CachingAllocator()
    classic = allocator.malloc(30 * MIB)
    allocator.apply(EXPANDABLE)
    allocator.free(allocator.malloc(40 * MIB))
    allocator.free(classic)
    allocator.apply(Settings())
    allocator.empty_cache()

    assert allocator.reserved_bytes == 0
    assert allocator.segments() == []


def test_expandable_blocks_are_never_inactive_splits():
    """Whatever the settings are when they are freed."""
    allocator = CachingAllocator(settings=EXPANDABLE)
    blocks = [allocator.malloc(5 * MIB) for _ in range(3)]
    allocator.apply(Settings())
    allocator.free(blocks[1])

    assert allocator.memory_stats()["inactive_split.all.current"] == 0


def test_pages_of_another_size():
    """`large_segment_size_mb` is the page of the large pool; a segment keeps the pages that it was made with."""
    allocator = CachingAllocator(settings=EXPANDABLE)
    allocator.malloc(5 * MIB, stream=1)
    allocator.apply(Settings(expandable_segments=True, large_segment_size_bytes=32 * MIB))
    allocator.malloc(5 * MIB)
    allocator.malloc(20 * MIB, stream=1)
    allocator.malloc(100)

    assert sorted((segment.pool, segment.stream, segment.total_size) for segment in allocator.segments()) == [
        ("large", 0, 32 * MIB),
        ("large", 1, 40 * MIB),
        ("small", 0, 2 * MIB),
    ]


def test_classic_segments_of_another_size():
    """Requests between 1 and 10 MiB share segments of `large_segment_size_mb`."""
    allocator = CachingAllocator(settings=Settings(large_segment_size_bytes=32 * MIB))
    for mb in (5, 9, 9, 9, 12):
        allocator.malloc(mb * MIB)

    assert sorted(segment.total_size for segment in allocator.segments()) == [12 * MIB, 32 * MIB]


def test_rounded_requests():
    """`roundup_power2_divisions` rounds the block, not what was requested."""
    allocator = CachingAllocator(settings=Settings(roundup_power2_divisions=(2,) * 16))
    block = allocator.malloc(33 * MIB)

    assert (block.size, block.requested_size, allocator.reserved_bytes) == (48 * MIB, 33 * MIB, 48 * MIB)


def test_rounding_can_leave_the_small_pool():
    """The pool follows from the rounded size."""
    allocator = CachingAllocator(settings=Settings(roundup_power2_divisions=(2,) * 16))

    assert allocator.malloc(MIB + 512).pool.name == "large"
    assert allocator.malloc(MIB - 512).size == MIB
