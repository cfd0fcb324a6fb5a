"""How a free block is found under settings that the default, plain best fit, knows nothing of."""

from peaksight.allocator.blocks import UNMAPPED, Block
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.settings import Settings


class FreeBlockSearch:
    """`get_free_block` in c10/cuda/CUDACachingAllocator.cpp, in full.

    Both filters of `max_split_size` look at the best fit only: where they reject it, no other block is tried.
    """

    def __init__(self, settings: Settings, *, counts_ages: bool) -> None:
        """Search as `settings` say; `counts_ages` where garbage collection wants to know the age of blocks."""
        self._counts_ages = counts_ages
        self._expandable_segments = settings.expandable_segments
        self._max_split_size = settings.max_split_size
        self._max_rounding = settings.max_non_split_rounding_bytes

    def __call__(self, pool: BlockPool, stream: int, size: int) -> Block | None:
        """Take the free block that serves `size` bytes best out of `pool`."""
        if self._counts_ages:
            pool.get_free_blocks_call_count += 1
        block = self._best_fit(pool, stream, size)
        if block is None or self._is_oversize(block, size):
            return None
        pool.remove(block)
        return block

    def _best_fit(self, pool: BlockPool, stream: int, size: int) -> Block | None:
        fitting = pool.fitting(stream, size)
        best = next(fitting, None)
        if best is None or not best.page_size:
            return best
        if not self._expandable_segments:
            return next((block for block in fitting if not block.page_size), None)
        for block in fitting:
            if _expandable_size(block) >= _expandable_size(best):
                break
            best = block
        return best

    def _is_oversize(self, block: Block, size: int) -> bool:
        if size < self._max_split_size:
            return block.size >= self._max_split_size
        return block.size >= size + self._max_rounding


def _expandable_size(block: Block) -> int:
    """What `block` can become, where unmapped pages follow."""
    following = block.next
    return block.size + (following.size if following is not None and following.state is UNMAPPED else 0)
