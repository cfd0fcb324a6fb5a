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

_FIRST_INTERVAL = MIB.bit_length() - 1


def round_up(nbytes: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is not below `nbytes`."""
    return -(-nbytes // multiple) * multiple


def round_size(nbytes: int) -> int:
    """The size in bytes of the block that serves a request of `nbytes` > 0."""
    return -(-nbytes // MIN_BLOCK_SIZE) * MIN_BLOCK_SIZE


def roundup_power2(divisions: tuple[int, ...], nbytes: int) -> int:
    """The size of the block for a request of `nbytes` > 0 under `roundup_power2_divisions`.

    A request of 2**k to 2**(k+1) bytes rounds up to a multiple of 2**k / division, with the division of its interval:
    `divisions[0]` serves up to 2 MiB, the last what is larger than the others.
    """
    power = nbytes.bit_length() - 1
    division = divisions[min(max(power - _FIRST_INTERVAL, 0), len(divisions) - 1)]
    if division <= 1 or nbytes <= MIN_BLOCK_SIZE * division:
        return round_size(nbytes)
    return round_up(nbytes, (1 << power) // division)


def get_allocation_size(size: int, large_segment_size: int = LARGE_BUFFER) -> int:
    """The bytes asked of the device when no cached block serves `size` (already rounded)."""
    if size <= SMALL_SIZE:
        return SMALL_BUFFER
    if size < MIN_LARGE_ALLOC:
        return large_segment_size
    return round_up(size, ROUND_LARGE)
