"""The CUDA caching allocator of one device, simulated."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from peaksight.allocator.addresses import DriverAddresses, SegmentAddresses
from peaksight.allocator.blocks import ACTIVE_ALLOCATED, ACTIVE_AWAITING_FREE, INACTIVE, Block
from peaksight.allocator.device import DeviceMemory
from peaksight.allocator.obtaining import BlockSource
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.reported import ReportedStatistics
from peaksight.allocator.search import FreeBlockSearch
from peaksight.allocator.segments import Segment, segments_from
from peaksight.allocator.settings import Settings
from peaksight.allocator.sizes import SMALL_SIZE, round_size, roundup_power2
from peaksight.allocator.statistics import DeviceStatistics

_DEFAULTS = Settings()
_UNLIMITED = -1
_Search = Callable[[BlockPool, int, int], Block | None]


class CachingAllocator(ReportedStatistics):
    """Hands out blocks as `DeviceCachingAllocator` in c10/cuda/CUDACachingAllocator.cpp does.

    Every number in bytes; the numbers without `peak_` are current.

    Limitations: no private pools (CUDA graphs, `MemPool`).
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        total_bytes: int | None = None,
        settings: Settings = _DEFAULTS,
        segment_address: SegmentAddresses | None = None,
    ) -> None:
        """Start with nothing reserved.

        Args:
            limit_bytes: The bytes that the device can give, in segments and outside of them; None is no limit.
            total_bytes: The memory of the device, of which a memory fraction is a part; None allows no fraction.
            settings: As in `PYTORCH_ALLOC_CONF`.
            segment_address: Gives the base address of a new segment of a given size. Best fit prefers the lower of
                two equal blocks, so the order of addresses matters. The default gives what the driver would.
        """
        super().__init__(DeviceStatistics())
        self._small = BlockPool("small", (self.everything, self._statistics.small_pool))
        self._large = BlockPool("large", (self.everything, self._statistics.large_pool))
        self._device = DeviceMemory(
            limit_bytes=limit_bytes,
            total_bytes=total_bytes,
            segment_address=segment_address or DriverAddresses(),
            statistics=self._statistics,
        )
        self._awaiting_free: dict[Block, None] = {}
        self._source = BlockSource(
            self._device, self._statistics, (self._large, self._small), self._complete_requested_frees
        )
        self._had_expandable_segments = False
        self.begin(settings)

    def begin(self, settings: Settings) -> None:
        """Start under `settings`, for one that was made before the process had its settings.

        Raises:
            ValueError: they cap the memory, and the device was given without `total_bytes`.
        """
        self._statistics.max_split_size = settings.max_split_size_bytes or _UNLIMITED
        self._device.set_memory_fraction(settings.per_process_memory_fraction)
        self.apply(settings)

    def apply(self, settings: Settings) -> None:
        """Go on under `settings`, as after `torch.cuda.memory._set_allocator_settings`.

        Segments that exist stay as they are, and so does the cap: as in C++, `per_process_memory_fraction` only counts
        where an allocator begins.
        """
        self._settings = settings
        self._had_expandable_segments |= settings.expandable_segments
        self._source.apply(settings)
        self._should_split = self._source.segments.should_split
        self._max_split_size = settings.max_split_size
        divisions = settings.roundup_power2_divisions
        self.round_size = partial(roundup_power2, divisions) if max(divisions) > 1 else round_size
        self._choose_search()

    def set_memory_fraction(self, fraction: float) -> None:
        """As `torch.cuda.set_per_process_memory_fraction`: cap what is reserved; 1 takes the cap away.

        Raises:
            ValueError: the device was given without `total_bytes`.
        """
        self._device.set_memory_fraction(fraction)
        self._choose_search()

    def lift_limits(self) -> None:
        """From here on the device gives whatever is asked for, whatever a memory fraction allows."""
        self._device.has_everything = True

    def take_outside(self, nbytes: int) -> bool:
        """Take `nbytes` of the device for something else than segments; False if it has not so many left.

        Nothing is released for it: a library that asks the driver knows nothing of cached blocks.
        """
        return self._device.take_outside(nbytes)

    def malloc(self, nbytes: int, stream: int = 0) -> Block:
        """Hand out a block for `nbytes` > 0 bytes.

        Raises:
            DeviceOutOfMemory: the limit or the cap is reached, and releasing the cached segments does not help.
        """
        size = self.round_size(nbytes)
        pool = self._small if size <= SMALL_SIZE else self._large
        block = self._get_free_block(pool, stream, size) or self._source.alloc_block(pool, stream, size, nbytes)
        self._split_off(block, size)
        block.state = ACTIVE_ALLOCATED
        block.requested_size = nbytes
        for statistics in pool.statistics:
            statistics.count_alloc(block.size, nbytes)
        if block.size >= self._max_split_size:
            self._statistics.oversize_allocations.increase(1)
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
        if block.size >= self._max_split_size:
            self._statistics.oversize_allocations.current -= 1

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
        if merged.page_size:
            return
        if merged.is_split:
            self._count_inactive_split(pool, 1 - num_merged, size)
        else:
            self._count_inactive_split(pool, -num_merged, size - merged.size)

    def release_cached_blocks(self) -> int:
        """Return every unsplit cached segment, and every free page of an expandable one, to the device.

        Waits for all streams first, so no block awaits its free afterwards.

        Returns:
            Bytes given back. Zero when every cached block is part of a split segment.
        """
        return self._source.release_cached_blocks()

    def empty_cache(self) -> None:
        """As `torch.cuda.empty_cache()`."""
        self.release_cached_blocks()

    def segments(self) -> list[Segment]:
        """The segments, sorted by address, with all their blocks."""
        heads = [*self._small.heads, *self._large.heads]
        return sorted((segment for head in heads for segment in segments_from(head)), key=attrgetter("address"))

    @property
    def limit_bytes(self) -> int | None:
        """The bytes that the device can give, in segments and outside of them; None is no limit."""
        return self._device.limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int | None) -> None:
        self._device.limit_bytes = limit_bytes

    @property
    def allowed_bytes(self) -> int | None:
        """PyTorch's own cap on the reserved bytes, by a memory fraction; None without one."""
        return self._device.allowed_bytes

    @allowed_bytes.setter
    def allowed_bytes(self, allowed_bytes: int | None) -> None:
        self._device.allowed_bytes = allowed_bytes
        self._choose_search()

    @property
    def outside_bytes(self) -> int:
        """Bytes of the device that the process holds outside of segments."""
        return self._device.outside_bytes

    @property
    def num_device_calls(self) -> int:
        """How often segments were made, given back or changed in size; while it stays, they do too."""
        return self._device.num_calls

    @property
    def settings(self) -> Settings:
        """What the allocator follows now."""
        return self._settings

    def _choose_search(self) -> None:
        """Plain best fit where it finds the same block as the full search."""
        needs_full_search = (
            self._had_expandable_segments
            or self._settings.max_split_size_bytes is not None
            or self._source.collects_garbage
        )
        self._get_free_block: _Search = BlockPool.pop_best_fit
        if needs_full_search:
            self._get_free_block = FreeBlockSearch(self._settings, counts_ages=self._source.collects_garbage)

    def _complete_requested_frees(self) -> None:
        for block in list(self._awaiting_free):
            self.free_completed(block)

    def _split_off(self, block: Block, size: int) -> None:
        """Give what `block` has beyond `size` bytes back to its pool, if that is worth a block of its own."""
        pool, whole, was_split = block.pool, block.size, block.is_split
        should_split = self._should_split(pool, size, whole - size)
        if should_split:
            pool.insert(block.split(size))
        # As in C++: the free pages of an expandable segment are not stuck, so none of its blocks count as such.
        if block.page_size:
            return
        if was_split:
            self._count_inactive_split(pool, should_split - 1, -block.size)
        elif should_split:
            self._count_inactive_split(pool, 1, whole - size)

    def _count_inactive_split(self, pool: BlockPool, num_blocks: int, nbytes: int) -> None:
        for statistics in pool.statistics:
            statistics.count_inactive_split(num_blocks, nbytes)
