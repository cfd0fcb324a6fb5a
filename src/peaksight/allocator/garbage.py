"""Which cached segments are given back before all of them are."""

from collections.abc import Callable

from peaksight.allocator.blocks import Block
from peaksight.allocator.pools import BlockPool


def collect_garbage(pool: BlockPool, target_bytes: int, release_block: Callable[[Block], None]) -> None:
    """Release the segments that were not used for long, until `target_bytes` are.

    Mirrors `garbage_collect_cached_blocks`. The age of a block is the number of searches since it became free; a round
    releases every unsplit block that is at least as old as the average of those left, even beyond the target. Blocks
    of expandable segments always are split, because unmapped pages follow.
    """
    free = [block for block in pool.free_blocks() if not block.is_split]
    ages = {block: pool.get_free_blocks_call_count - block.gc_count_base for block in free}
    reclaimed = 0
    while ages and reclaimed < target_bytes:
        threshold = sum(ages.values()) / len(ages)
        for block in [block for block, age in ages.items() if age >= threshold]:
            del ages[block]
            reclaimed += block.size
            release_block(block)


def release_available_cached_blocks(
    pool: BlockPool, stream: int, size: int, max_split_size: int, release_block: Callable[[Block], None]
) -> bool:
    """Release one oversize block that is large enough for `size` bytes, or several from the largest down.

    Mirrors the C++ function of that name. Blocks of expandable segments are passed over.

    Returns:
        Whether that was enough.
    """
    wanted = max(size, max_split_size)
    fitting = next(pool.fitting(stream, wanted), None)
    if fitting is not None and not fitting.page_size:
        release_block(fitting)
        return True
    released = 0
    for block in list(pool.below(stream, wanted)):
        if released >= wanted or block.size < max_split_size:
            break
        if not block.page_size:
            released += block.size
            release_block(block)
    return released >= wanted
