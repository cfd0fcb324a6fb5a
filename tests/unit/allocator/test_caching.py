"""Malloc, free, streams and the limit."""

import pytest

from peaksight.allocator import BlockState, CachingAllocator, DeviceOutOfMemory
from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.units import MIB


class Ascending:
    """Segment addresses that grow from 0."""

    def __init__(self):
        self._top = 0

    def __call__(self, size):
        self._top += size
        return self._top - size

    def release(self, address, size):
        """They are not given again."""


def test_reused_block():
    """A freed block serves the next request of its size without new memory."""
    allocator = CachingAllocator()
    first = allocator.malloc(30 * MIB)
    address = first.address
    allocator.free(first)

    assert allocator.malloc(30 * MIB).address == address
    assert allocator.reserved_bytes == 30 * MIB


def test_best_fit_prefers_the_smaller_block():
    """Of two free blocks that are large enough, the smaller one is taken."""
    allocator = CachingAllocator(segment_address=Ascending())
    large, small = allocator.malloc(40 * MIB), allocator.malloc(30 * MIB)
    allocator.free(large)
    allocator.free(small)

    assert allocator.malloc(30 * MIB).address == 40 * MIB


def test_best_fit_prefers_the_lower_address():
    """Of two free blocks of equal size, the one at the lower address is taken."""
    allocator = CachingAllocator(segment_address=Ascending())
    blocks = [allocator.malloc(30 * MIB) for _ in range(2)]
    for block in reversed(blocks):
        allocator.free(block)

    assert allocator.malloc(30 * MIB).address == 0


def test_rest_of_a_large_block_stays_with_it():
    """A rest of up to 1 MiB is not split off a large block, and counts as allocated."""
    allocator = CachingAllocator()
    block = allocator.malloc(11 * MIB)

    assert block.size == 12 * MIB
    assert allocator.allocated_bytes == 12 * MIB
    assert allocator.requested_bytes == 11 * MIB


def test_streams_do_not_share_blocks():
    """A free block only serves the stream that it was allocated on."""
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(30 * MIB, stream=0))
    allocator.malloc(30 * MIB, stream=7)

    assert allocator.reserved_bytes == 60 * MIB


def test_block_awaiting_another_stream():
    """Between request and completion of a free, a block is not allocated but active, and not reusable."""
    allocator = CachingAllocator()
    block = allocator.malloc(30 * MIB)
    allocator.free_requested(block)
    other = allocator.malloc(30 * MIB)

    assert block.state is BlockState.ACTIVE_AWAITING_FREE
    assert (allocator.allocated_bytes, allocator.active_bytes, allocator.reserved_bytes) == (
        30 * MIB,
        60 * MIB,
        60 * MIB,
    )

    allocator.free_completed(block)

    assert allocator.active_bytes == 30 * MIB
    assert allocator.malloc(30 * MIB).address != other.address
    assert allocator.reserved_bytes == 60 * MIB


def test_releasing_the_cache_waits_for_streams():
    """Releasing the cache completes every requested free; completing it once more changes nothing."""
    allocator = CachingAllocator()
    block = allocator.malloc(30 * MIB)
    allocator.free_requested(block)

    assert allocator.release_cached_blocks() == 30 * MIB

    allocator.free_completed(block)

    assert allocator.active_bytes == allocator.reserved_bytes == 0
    assert allocator.memory_stats()["num_sync_all_streams"] == 1


def test_empty_cache_keeps_split_segments():
    """A segment with one block in use keeps all its memory."""
    allocator = CachingAllocator()
    blocks = [allocator.malloc(2 * MIB) for _ in range(3)]
    for block in blocks[1:]:
        allocator.free(block)
    allocator.empty_cache()

    assert allocator.reserved_bytes == 20 * MIB

    allocator.free(blocks[0])
    allocator.empty_cache()

    assert allocator.reserved_bytes == 0
    assert allocator.segments() == []


def test_retry_frees_cached_segments():
    """At the limit, cached segments are given back and the allocation is tried once more."""
    allocator = CachingAllocator(limit_bytes=100 * MIB + KEPT_BY_DRIVER)
    blocks = [allocator.malloc(40 * MIB) for _ in range(2)]
    for block in blocks:
        allocator.free(block)
    allocator.malloc(60 * MIB)
    stats = allocator.memory_stats()

    assert allocator.reserved_bytes == 60 * MIB
    assert allocator.peak_reserved_bytes == 80 * MIB
    assert (stats["num_alloc_retries"], stats["num_ooms"], stats["num_device_free"]) == (1, 0, 2)


def test_out_of_memory():
    """When releasing the cache does not help, the error carries what PyTorch's message needs."""
    allocator = CachingAllocator(limit_bytes=50 * MIB + KEPT_BY_DRIVER)
    held = allocator.malloc(30 * MIB)
    with pytest.raises(DeviceOutOfMemory) as caught:
        allocator.malloc(20 * MIB + 1)

    assert caught.value.requested_bytes == 20 * MIB + 1
    assert caught.value.segment_bytes == 22 * MIB
    assert caught.value.allocated_bytes == caught.value.reserved_bytes == 30 * MIB
    assert allocator.memory_stats()["num_ooms"] == 1

    allocator.free(held)

    assert allocator.malloc(20 * MIB + 1).requested_size == 20 * MIB + 1


def test_limit_can_change():
    """A script can lower the limit while it runs, as `set_per_process_memory_fraction` does."""
    allocator = CachingAllocator()
    allocator.malloc(30 * MIB)
    allocator.limit_bytes = 40 * MIB

    with pytest.raises(DeviceOutOfMemory):
        allocator.malloc(20 * MIB)


def test_segments():
    """The snapshot lists every segment by address, with its blocks in order and their states."""
    allocator = CachingAllocator(segment_address=Ascending())
    allocator.malloc(100)
    allocator.free(allocator.malloc(2 * MIB, stream=3))
    small, large = allocator.segments()

    assert (small.address, small.total_size, small.stream, small.pool) == (0, 2 * MIB, 0, "small")
    assert [(block.size, block.state) for block in small.blocks] == [
        (512, BlockState.ACTIVE_ALLOCATED),
        (2 * MIB - 512, BlockState.INACTIVE),
    ]
    assert (large.address, large.total_size, large.stream, large.pool) == (2 * MIB, 20 * MIB, 3, "large")
    assert [(block.size, block.state) for block in large.blocks] == [(20 * MIB, BlockState.INACTIVE)]
