"""The counts behind torch.cuda.memory_stats()."""

from itertools import product

from peaksight.allocator import CachingAllocator, Settings
from peaksight.units import MIB

STATS = [
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
]
POOLS = ("all", "small_pool", "large_pool")
METRICS = ("current", "peak", "allocated", "freed")
OVERSIZE = ("oversize_allocations", "oversize_segments")
COUNTERS = [
    "num_alloc_retries",
    "num_ooms",
    "max_split_size",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
]


def inactive_split(allocator, metric):
    """Number and bytes of the free parts of split segments."""
    stats = allocator.memory_stats()
    return stats[f"inactive_split.all.{metric}"], stats[f"inactive_split_bytes.all.{metric}"]


def test_keys():
    """The keys are those of torch.cuda.memory_stats() in torch 2.13 and 2.14, in the same order."""
    expected = [
        *map(".".join, product(STATS, POOLS, METRICS)),
        *map(".".join, product(OVERSIZE, METRICS)),
        *COUNTERS,
    ]

    assert list(CachingAllocator().memory_stats()) == sorted(expected)


def test_counts_of_both_pools():
    """Each pool has its own counts, and `all` is their sum."""
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(100))
    allocator.malloc(30 * MIB)
    stats = allocator.memory_stats()

    assert stats["allocation.small_pool.allocated"] == stats["allocation.small_pool.freed"] == 1
    assert stats["allocated_bytes.small_pool.peak"] == 512
    assert stats["requested_bytes.small_pool.peak"] == 100
    assert stats["allocated_bytes.large_pool.current"] == stats["allocated_bytes.all.current"] == 30 * MIB
    assert stats["segment.all.current"] == stats["num_device_alloc"] == 2
    assert stats["reserved_bytes.all.current"] == 32 * MIB
    assert stats["max_split_size"] == -1


def test_inactive_split():
    """Only free parts of split segments count, and merging a whole segment takes them away."""
    allocator = CachingAllocator()
    first = allocator.malloc(4 * MIB)
    second = allocator.malloc(4 * MIB)

    assert inactive_split(allocator, "current") == (1, 12 * MIB)

    allocator.free(first)

    assert inactive_split(allocator, "current") == (2, 16 * MIB)

    allocator.free(second)

    assert inactive_split(allocator, "current") == (0, 0)
    assert inactive_split(allocator, "peak") == (2, 16 * MIB)


def test_expandable_segments_have_no_inactive_split():
    """The free pages of an expandable segment can be given back, so they do not count."""
    allocator = CachingAllocator(settings=Settings(expandable_segments=True))
    allocator.malloc(4 * MIB)

    assert inactive_split(allocator, "peak") == (0, 0)


def test_reset_peak_stats():
    """After a reset, the peaks start at what is there."""
    allocator = CachingAllocator()
    kept = allocator.malloc(30 * MIB)
    allocator.free(allocator.malloc(50 * MIB))
    allocator.reset_peak_stats()

    assert allocator.peak_allocated_bytes == allocator.peak_active_bytes == kept.size
    assert allocator.peak_requested_bytes == kept.requested_size
    assert allocator.peak_reserved_bytes == 80 * MIB


def test_reset_accumulated_stats():
    """After a reset, the sums and the counts of events start at zero and the current amounts stay."""
    allocator = CachingAllocator()
    kept = allocator.malloc(30 * MIB)
    allocator.reset_accumulated_stats()
    allocator.free(kept)
    stats = allocator.memory_stats()

    assert stats["num_device_alloc"] == stats["num_alloc_retries"] == 0
    assert stats["allocated_bytes.all.allocated"] == 0
    assert stats["allocated_bytes.all.freed"] == 30 * MIB
    assert stats["allocated_bytes.all.current"] == 0
