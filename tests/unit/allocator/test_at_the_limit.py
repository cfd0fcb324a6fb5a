"""Caps, limits and memory outside of segments."""

import pytest

from peaksight.allocator import CachingAllocator, DeviceOutOfMemory, Settings
from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.units import MIB


def counters(allocator):
    """Retries, errors, rejections, and synchronisations of all streams."""
    stats = allocator.memory_stats()
    return tuple(stats[f"num_{name}"] for name in ("alloc_retries", "ooms", "oom_rejections", "sync_all_streams"))


def fails(allocator, nbytes):
    """The error of a request."""
    with pytest.raises(DeviceOutOfMemory) as caught:
        allocator.malloc(nbytes)
    return caught.value


def test_the_driver_keeps_its_last_bytes():
    """A segment needs 2 MiB more than its size."""
    assert CachingAllocator(limit_bytes=32 * MIB).malloc(30 * MIB).size == 30 * MIB

    fails(CachingAllocator(limit_bytes=32 * MIB - 1), 30 * MIB)


def test_the_cap_is_exact():
    """What a fraction allows can be reserved to the byte."""
    allocator = CachingAllocator(total_bytes=100 * MIB)
    allocator.set_memory_fraction(0.3)

    assert allocator.allowed_bytes == 30 * MIB
    assert allocator.malloc(30 * MIB).size == 30 * MIB

    allocator.empty_cache()

    assert fails(allocator, 1).allowed_bytes == 30 * MIB


def test_the_cap_rounds_down():
    """As a conversion to size_t does."""
    allocator = CachingAllocator(total_bytes=1001)
    allocator.set_memory_fraction(0.5)

    assert allocator.allowed_bytes == 500


def test_fraction_in_the_settings():
    """`per_process_memory_fraction` caps an allocator from its start, and not one that runs."""
    settings = Settings(per_process_memory_fraction=0.25)
    allocator = CachingAllocator(total_bytes=100 * MIB)
    allocator.apply(settings)

    assert allocator.allowed_bytes is None
    assert CachingAllocator(total_bytes=100 * MIB, settings=settings).allowed_bytes == 25 * MIB


def test_a_fraction_of_one_is_no_cap():
    """It takes an earlier one away."""
    allocator = CachingAllocator(total_bytes=100 * MIB)
    allocator.set_memory_fraction(0.1)
    allocator.set_memory_fraction(1.0)

    assert allocator.allowed_bytes is None
    assert allocator.malloc(50 * MIB).size == 50 * MIB


def test_a_fraction_of_unknown_memory():
    """It can't be taken."""
    with pytest.raises(ValueError, match="total_bytes"):
        CachingAllocator().set_memory_fraction(0.5)


def test_the_cap_comes_before_the_device():
    """A request beyond it asks nothing of the device, in both attempts."""
    allocator = CachingAllocator(total_bytes=100 * MIB, settings=Settings(per_process_memory_fraction=0.1))
    fails(allocator, 20 * MIB)

    assert allocator.memory_stats()["num_device_alloc"] == 0
    assert counters(allocator) == (1, 1, 0, 1)


def test_a_retry_under_the_cap():
    """Cached segments are given back for a larger one."""
    allocator = CachingAllocator(total_bytes=100 * MIB, settings=Settings(per_process_memory_fraction=0.5))
    allocator.free(allocator.malloc(30 * MIB))
    allocator.malloc(40 * MIB)

    assert allocator.reserved_bytes == 40 * MIB
    assert counters(allocator) == (1, 0, 0, 1)


def test_the_cap_knows_classic_sizes():
    """As in C++, an expandable segment that would grow by less is held to the size of a classic one."""
    allocator = CachingAllocator(
        total_bytes=100 * MIB, settings=Settings(per_process_memory_fraction=0.5, expandable_segments=True)
    )
    held = allocator.malloc(20 * MIB)
    allocator.free(allocator.malloc(12 * MIB))
    error = fails(allocator, 32 * MIB)

    assert (error.segment_bytes, error.allocated_bytes) == (32 * MIB, held.size)


def test_outside_memory_is_not_reserved():
    """It shrinks what segments can get, not what the cap allows."""
    allocator = CachingAllocator(
        limit_bytes=100 * MIB, total_bytes=100 * MIB, settings=Settings(per_process_memory_fraction=0.5)
    )

    assert allocator.take_outside(50 * MIB)
    assert (allocator.outside_bytes, allocator.reserved_bytes) == (50 * MIB, 0)

    allocator.malloc(48 * MIB)

    assert not allocator.take_outside(1)
    assert allocator.outside_bytes == 50 * MIB

    allocator.set_memory_fraction(1.0)
    error = fails(allocator, 2 * MIB)

    assert (error.outside_bytes, error.reserved_bytes, error.allowed_bytes) == (50 * MIB, 48 * MIB, None)


def test_outside_memory_releases_nothing():
    """Cached segments stay, because libraries know nothing of them."""
    allocator = CachingAllocator(limit_bytes=100 * MIB)
    allocator.free(allocator.malloc(90 * MIB))

    assert not allocator.take_outside(20 * MIB)
    assert allocator.reserved_bytes == 90 * MIB


def test_a_failed_request_changes_nothing_else():
    """After an error, the counters of blocks are as before."""
    allocator = CachingAllocator(limit_bytes=50 * MIB)
    allocator.malloc(30 * MIB)
    before = allocator.memory_stats()
    fails(allocator, 20 * MIB)
    after = allocator.memory_stats()
    changed = {key: value for key, value in after.items() if value != before[key]}

    assert changed == {"num_alloc_retries": 1, "num_ooms": 1, "num_sync_all_streams": 1}


def test_pages_that_were_mapped_before_the_device_was_full():
    """Of one mapping all pages come or none; those of an earlier one stay until the cache is released."""
    allocator = CachingAllocator(limit_bytes=100 * MIB + KEPT_BY_DRIVER, settings=Settings(expandable_segments=True))
    blocks = [allocator.malloc(20 * MIB) for _ in range(3)]
    allocator.free(blocks[0])
    allocator.empty_cache()
    for block in blocks[1:]:
        allocator.free(block)
    allocator.reset_peak_stats()
    fails(allocator, 120 * MIB)
    stats = allocator.memory_stats()

    assert (allocator.reserved_bytes, allocator.peak_reserved_bytes) == (0, 60 * MIB)
    assert (stats["num_device_alloc"], stats["num_device_free"]) == (4, 2)


def test_rejection_ahead_of_time():
    """With throw_on_cudamalloc_oom, what is beyond the fraction in the settings fails before anything is released."""
    settings = Settings(throw_on_cudamalloc_oom=True, per_process_memory_fraction=0.5)
    allocator = CachingAllocator(total_bytes=100 * MIB)
    allocator.apply(settings)
    allocator.free(allocator.malloc(40 * MIB))
    error = fails(allocator, 44 * MIB)

    assert error.is_rejected
    assert allocator.reserved_bytes == 40 * MIB
    assert counters(allocator) == (0, 0, 1, 0)

    allocator.lift_limits()

    assert allocator.malloc(44 * MIB).size == 44 * MIB


def test_no_rejection_where_the_cap_comes_first():
    """As in C++, the cap is looked at before, and what it stops is tried again."""
    settings = Settings(throw_on_cudamalloc_oom=True, per_process_memory_fraction=0.5)
    allocator = CachingAllocator(total_bytes=100 * MIB, settings=settings)
    allocator.free(allocator.malloc(40 * MIB))
    allocator.malloc(44 * MIB)

    assert counters(allocator) == (1, 0, 0, 1)
