"""The CUDA caching allocator of one device, simulated."""

from collections.abc import Callable
from operator import attrgetter

from peaksight.allocator.addresses import DriverAddresses
from peaksight.allocator.blocks import ACTIVE_ALLOCATED, ACTIVE_AWAITING_FREE, INACTIVE, Block
from peaksight.allocator.device import DeviceMemory, DeviceOutOfMemory
from peaksight.allocator.expandable import ExpandableSegments
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.segments import ClassicSegments, Segment, SegmentKind, segments_from
from peaksight.allocator.sizes import SMALL_SIZE, get_allocation_size, round_size
from peaksight.allocator.statistics import DeviceStatistics


class CachingAllocator:
    """Hands out blocks as `DeviceCachingAllocator` in c10/cuda/CUDACachingAllocator.cpp does.

    Every number in bytes; the numbers without `peak_` are current.

    Limitations: no private pools (CUDA graphs, `MemPool`), and of the settings only `expandable_segments`.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        expandable_segments: bool = False,
        segment_address: Callable[[int], int] | None = None,
    ) -> None:
        """Start with nothing reserved.

        Args:
            limit_bytes: The reserved bytes that the device can give; None is no limit.
            expandable_segments: As in `PYTORCH_ALLOC_CONF`.
            segment_address: Gives the base address of a new segment of a given size. Best fit prefers the lower of
                two equal blocks, so the order of addresses matters. The default gives what the driver would.
        """
        self._statistics = DeviceStatistics()
        everything = self._statistics.all
        self._small = BlockPool("small", (everything, self._statistics.small_pool))
        self._large = BlockPool("large", (everything, self._statistics.large_pool))
        self._device = DeviceMemory(
            limit_bytes=limit_bytes,
            segment_address=segment_address or DriverAddresses(),
            statistics=self._statistics,
        )
        # As in C++: the free pages of an expandable segment are not stuck, so none of its blocks count as such.
        self._counts_inactive_split = not expandable_segments
        self._segments: SegmentKind = (ExpandableSegments if expandable_segments else ClassicSegments)(self._device)
        self._awaiting_free: dict[Block, None] = {}

    def malloc(self, nbytes: int, stream: int = 0) -> Block:
        """Hand out a block for `nbytes` > 0 bytes.

        Raises:
            DeviceOutOfMemory: the limit is reached, and releasing the cached segments does not help.
        """
        size = round_size(nbytes)
        pool = self._small if size <= SMALL_SIZE else self._large
        block = self._segments.get_free_block(pool, stream, size) or self._alloc_block(pool, stream, size, nbytes)
        self._split_off(block, size)
        block.state = ACTIVE_ALLOCATED
        block.requested_size = nbytes
        for statistics in pool.statistics:
            statistics.count_alloc(block.size, nbytes)
        return block

    def free(self, block: Block) -> None:
        """Take `block` back at once: no other stream uses it."""
        self.free_requested(block)
        self.free_completed(block)

    def free_requested(self, block: Block) -> None:
        """The tensor of `block` died, but another stream may still use it: no longer allocated, not yet reusable."""
        assert block.state is ACTIVE_ALLOCATED
        block.state = ACTIVE_AWAITING_FREE
        self._awaiting_free[block] = None
        for statistics in block.pool.statistics:
            statistics.count_free_requested(block.size)

    def free_completed(self, block: Block) -> None:
        """The last stream is done with `block`: it becomes reusable, merged with its free neighbours.

        Nothing happens if `block` awaits no free: releasing the cache waits for every stream.
        """
        if block.state is not ACTIVE_AWAITING_FREE:
            return
        del self._awaiting_free[block]
        pool, size = block.pool, block.size
        for statistics in pool.statistics:
            statistics.count_free_completed(size, block.requested_size)
        block.state = INACTIVE
        merged, num_merged = pool.merge_neighbours(block)
        pool.insert(merged)
        if merged.is_split:
            self._count_inactive_split(pool, 1 - num_merged, size)
        else:
            self._count_inactive_split(pool, -num_merged, size - merged.size)

    def release_cached_blocks(self) -> int:
        """Return every unsplit cached segment, or every free page of an expandable one, to the device.

        Waits for all streams first, so no block awaits its free afterwards.

        Returns:
            Bytes given back. Zero when every cached block is part of a split segment.
        """
        self._statistics.num_sync_all_streams += 1
        for block in list(self._awaiting_free):
            self.free_completed(block)
        return self._segments.release_blocks(self._large) + self._segments.release_blocks(self._small)

    def empty_cache(self) -> None:
        """As `torch.cuda.empty_cache()`."""
        self.release_cached_blocks()

    def reset_peak_stats(self) -> None:
        """As `torch.cuda.reset_peak_memory_stats()`."""
        self._statistics.reset_peak()

    def reset_accumulated_stats(self) -> None:
        """As `torch.cuda.reset_accumulated_memory_stats()`."""
        self._statistics.reset_accumulated()

    def memory_stats(self) -> dict[str, int]:
        """As `torch.cuda.memory_stats()`: the same keys, sorted."""
        return self._statistics.flatten()

    def segments(self) -> list[Segment]:
        """The segments, sorted by address, with all their blocks."""
        heads = [*self._small.heads, *self._large.heads]
        return sorted((segment for head in heads for segment in segments_from(head)), key=attrgetter("address"))

    @property
    def limit_bytes(self) -> int | None:
        """The reserved bytes that the device can give; None is no limit."""
        return self._device.limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int | None) -> None:
        self._device.limit_bytes = limit_bytes

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks that tensors hold."""
        return self._statistics.all.allocated_bytes.current

    @property
    def active_bytes(self) -> int:
        """Bytes of the blocks that tensors hold or another stream may still use."""
        return self._statistics.all.active_bytes.current

    @property
    def requested_bytes(self) -> int:
        """Bytes asked for in the active blocks, before rounding."""
        return self._statistics.all.requested_bytes.current

    @property
    def reserved_bytes(self) -> int:
        """Bytes of the segments."""
        return self._statistics.all.reserved_bytes.current

    @property
    def peak_allocated_bytes(self) -> int:
        """The most `allocated_bytes` since the start or the last reset."""
        return self._statistics.all.allocated_bytes.peak

    @property
    def peak_active_bytes(self) -> int:
        """The most `active_bytes` since the start or the last reset."""
        return self._statistics.all.active_bytes.peak

    @property
    def peak_requested_bytes(self) -> int:
        """The most `requested_bytes` since the start or the last reset."""
        return self._statistics.all.requested_bytes.peak

    @property
    def peak_reserved_bytes(self) -> int:
        """The most `reserved_bytes` since the start or the last reset."""
        return self._statistics.all.reserved_bytes.peak

    def _alloc_block(self, pool: BlockPool, stream: int, size: int, nbytes: int) -> Block:
        block = self._segments.alloc_block(pool, stream, size)
        if block is None:
            self.release_cached_blocks()
            self._statistics.num_alloc_retries += 1
            block = self._segments.alloc_block(pool, stream, size)
        if block is None:
            self._statistics.num_ooms += 1
            raise DeviceOutOfMemory(
                requested_bytes=nbytes,
                segment_bytes=get_allocation_size(size),
                allocated_bytes=self.allocated_bytes,
                reserved_bytes=self.reserved_bytes,
            )
        return block

    def _split_off(self, block: Block, size: int) -> None:
        """Give what `block` has beyond `size` bytes back to its pool, if that is worth a block of its own."""
        pool, whole, was_split = block.pool, block.size, block.is_split
        should_split = self._segments.should_split(pool, whole - size)
        if should_split:
            pool.insert(block.split(size))
        if was_split:
            self._count_inactive_split(pool, should_split - 1, -block.size)
        elif should_split:
            self._count_inactive_split(pool, 1, whole - size)

    def _count_inactive_split(self, pool: BlockPool, num_blocks: int, nbytes: int) -> None:
        if self._counts_inactive_split:
            for statistics in pool.statistics:
                statistics.count_inactive_split(num_blocks, nbytes)
