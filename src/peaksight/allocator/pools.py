"""A pool: the free blocks of one size class, found by best fit."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

from peaksight.allocator.blocks import UNMAPPED, Block
from peaksight.allocator.statistics import PoolStatistics

# (size, address, block). A plain list with bisect: at the few thousand free blocks that a training run has, it takes
# a third of the time of a sorted container written in Python.
_SortedBlocks = list[tuple[int, int, Block]]


class BlockPool:
    """The small or the large pool of one device, as `BlockPool` in CUDACachingAllocator.cpp.

    `name` is `small` or `large`. `heads` holds the first block of every segment. `statistics` are the counts that
    a change in this pool touches: those of the device and those of the pool. `get_free_blocks_call_count` are the
    searches so far, by which garbage collection tells the age of a block; nobody counts them without it.
    """

    def __init__(self, name: str, statistics: tuple[PoolStatistics, ...]) -> None:
        """Make an empty pool."""
        self.name = name
        self.is_small = name == "small"
        self.heads: dict[Block, None] = {}
        self.statistics = statistics
        self.get_free_blocks_call_count = 0
        # A block only serves the stream it was allocated on, so each stream has its own lists.
        self._free: defaultdict[int, _SortedBlocks] = defaultdict(list)
        self._unmapped: defaultdict[int, _SortedBlocks] = defaultdict(list)

    def insert(self, block: Block) -> None:
        """Make `block`, free or unmapped, available to the requests of its stream."""
        blocks = self._unmapped if block.state is UNMAPPED else self._free
        block.gc_count_base = self.get_free_blocks_call_count
        insort(blocks[block.stream], (block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Take `block` out, before it changes its size or state."""
        blocks = (self._unmapped if block.state is UNMAPPED else self._free)[block.stream]
        del blocks[bisect_left(blocks, (block.size, block.address))]

    def pop_best_fit(self, stream: int, size: int) -> Block | None:
        """Take out the smallest free block of at least `size` bytes, at the lowest address among equals."""
        free = self._free[stream]
        index = bisect_left(free, (size,))
        return free.pop(index)[2] if index < len(free) else None

    def fitting(self, stream: int, size: int) -> Iterator[Block]:
        """The free blocks of at least `size` bytes in the order of best fit."""
        free = self._free[stream]
        return (free[index][2] for index in range(bisect_left(free, (size,)), len(free)))

    def below(self, stream: int, size: int) -> Iterator[Block]:
        """The free blocks of less than `size` bytes, the largest first."""
        free = self._free[stream]
        return (free[index][2] for index in range(bisect_left(free, (size,)) - 1, -1, -1))

    def unmapped(self, stream: int) -> list[Block]:
        """The unmapped ranges of expandable segments, lowest address first."""
        return [block for _, _, block in sorted(self._unmapped[stream], key=itemgetter(1))]

    def free_blocks(self) -> list[Block]:
        """Every free block, in the order in which the allocator releases them."""
        return [block for stream in sorted(self._free) for _, _, block in self._free[stream]]

    def merge_neighbours(self, block: Block) -> tuple[Block, int]:
        """Merge `block` with those neighbours that are in the same state, as `try_merge_blocks`.

        Returns:
            The merged block, not yet inserted, and the number of neighbours that it swallowed.
        """
        num_merged = 0
        before, behind = block.prev, block.next
        if behind is not None and behind.state is block.state:
            self.remove(behind)
            block.absorb_next()
            num_merged += 1
        if before is not None and before.state is block.state:
            self.remove(before)
            before.absorb_next()
            return before, num_merged + 1
        return block, num_merged
