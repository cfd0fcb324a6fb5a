"""Expandable segments: one range of addresses per stream and pool, mapped page by page.

See Note [Expandable Segments] in c10/cuda/CUDACachingAllocator.cpp.
"""

from peaksight.allocator.blocks import INACTIVE, UNMAPPED, Block
from peaksight.allocator.device import DeviceMemory
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.settings import Settings
from peaksight.allocator.sizes import MIN_BLOCK_SIZE, SMALL_BUFFER, round_up
from peaksight.units import GIB

# PyTorch reserves 9/8 of the card's memory; an address space that no card fills needs no second segment.
ADDRESS_SPACE_SIZE = 4096 * GIB


class ExpandableSegments:
    """Segments that grow by pages: `expandable_segments:True`.

    A page that the device can't give takes those of its `map_block` with it; what an earlier one mapped for the same
    request stays.
    """

    def __init__(self, device: DeviceMemory) -> None:
        """Map pages of `device`, under the default settings."""
        self._device = device
        self.apply(Settings())

    def apply(self, settings: Settings) -> None:
        """Go on under `settings`; a segment keeps the pages that it was made with."""
        self._large_page_size = settings.large_segment_size_bytes

    def alloc_block(self, pool: BlockPool, stream: int, size: int) -> Block | None:
        """Map pages until a block has `size` bytes; None if the device has not enough."""
        start = self._find_expandable_block(pool, stream, size)
        block = start if start.state is INACTIVE else self._map_block(start, min(start.size, size))
        while block is not None and block.size < size:
            following = block.next
            assert following is not None
            block = self._map_block(following, min(following.size, size - block.size))
        if block is not None:
            pool.remove(block)
        return block

    def should_split(self, pool: BlockPool, size: int, remaining: int) -> bool:
        """Nothing is left with a block that could be a block of its own, in either pool."""
        return remaining >= MIN_BLOCK_SIZE

    def release_blocks(self, pool: BlockPool) -> int:
        """Unmap every page of `pool` that is entirely free, and return the bytes."""
        return sum(self._unmap_block(block) for block in pool.free_blocks() if block.page_size)

    def _find_expandable_block(self, pool: BlockPool, stream: int, size: int) -> Block:
        for unmapped in pool.unmapped(stream):
            before = unmapped.prev
            first = before if before is not None and before.state is INACTIVE else unmapped
            if self._has_available_address_space(first, size):
                return first
        return self._add_segment(pool, stream)

    def _has_available_address_space(self, block: Block | None, size: int) -> bool:
        available = 0
        while block is not None and block.state in (INACTIVE, UNMAPPED) and available < size:
            available += block.size
            block = block.next
        return available >= size

    def _add_segment(self, pool: BlockPool, stream: int) -> Block:
        page_size = SMALL_BUFFER if pool.is_small else self._large_page_size
        size = round_up(ADDRESS_SPACE_SIZE, page_size)
        address = self._device.segment_address(size)
        block = Block(address, size, stream, pool, UNMAPPED, page_size)
        pool.heads[block] = None
        pool.insert(block)
        return block

    def _map_block(self, block: Block, size: int) -> Block | None:
        """Back the first `size` bytes of an unmapped `block` with pages, and merge them with free neighbours."""
        pool = block.pool
        mapped_size = round_up(size, block.page_size)
        if not self._device.reserve(pool, mapped_size):
            return None
        pool.remove(block)
        if mapped_size < block.size:
            pool.insert(block.split(mapped_size))
        block.state = INACTIVE
        merged, _ = pool.merge_neighbours(block)
        pool.insert(merged)
        return merged

    def _unmap_block(self, block: Block) -> int:
        """Unmap the whole pages inside a free `block`, and return their bytes."""
        start, end = self._whole_pages(block)
        if start >= end:
            return 0
        pool = block.pool
        pool.remove(block)
        block = self._cut(block, start, end)
        block.state = UNMAPPED
        self._device.release(pool, end - start)
        merged, _ = pool.merge_neighbours(block)
        pool.insert(merged)
        if not merged.is_split:
            pool.remove(merged)
            del pool.heads[merged]
        return end - start

    def _whole_pages(self, block: Block) -> tuple[int, int]:
        page, base = block.page_size, block
        while base.prev is not None:
            base = base.prev
        start = base.address + round_up(block.address - base.address, page)
        end = base.address + (block.end - base.address) // page * page
        return start, end

    def _cut(self, block: Block, start: int, end: int) -> Block:
        """Give what lies before `start` and behind `end` back to the pool, and return what lies between."""
        if block.address < start:
            block, before = block.split(start - block.address), block
            block.pool.insert(before)
        if end < block.end:
            block.pool.insert(block.split(end - block.address))
        return block
