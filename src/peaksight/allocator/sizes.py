"""The size rules of the CUDA caching allocator.

Constants and functions carry the names of c10/core/AllocatorConfig.h and c10/cuda/CUDACachingAllocator.cpp
(torch 2.11 to 2.14), without the leading k.
"""

from peaksight.units import MIB

MIN_BLOCK_SIZE = 512
SMALL_SIZE = MIB
SMALL_BUFFER = 2 * MIB
LARGE_BUFFER = 20 * MIB
MIN_LARGE_ALLOC = 10 * MIB
ROUND_LARGE = 2 * MIB
MAX_SPLIT_SIZE_UNLIMITED = -1


def round_up(nbytes: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `nbytes`."""
    return -(-nbytes // multiple) * multiple


def round_size(nbytes: int) -> int:
    """The size in bytes of the block that serves a request of `nbytes` > 0."""
    return -(-nbytes // MIN_BLOCK_SIZE) * MIN_BLOCK_SIZE


def get_allocation_size(size: int) -> int:
    """The bytes asked of the device when no cached block serves `size` (already rounded)."""
    if size <= SMALL_SIZE:
        return SMALL_BUFFER
    if size < MIN_LARGE_ALLOC:
        return LARGE_BUFFER
    return round_up(size, ROUND_LARGE)
