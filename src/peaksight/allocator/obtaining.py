"""What is tried, and in which order, when no cached block serves a request."""

from collections.abc import Callable

from peaksight.allocator.blocks import Block
from peaksight.allocator.device import DeviceMemory, DeviceOutOfMemory
from peaksight.allocator.expandable import ExpandableSegments
from peaksight.allocator.garbage import collect_garbage, release_available_cached_blocks
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.segments import ClassicSegments, SegmentKind
from peaksight.allocator.settings import Settings
from peaksight.allocator.sizes import get_allocation_size
from peaksight.allocator.statistics import DeviceStatistics


class BlockSource:
    """Obtains blocks from the device in the order of `DeviceCachingAllocator::malloc`.

    Garbage collection, the device, the device after releasing oversize blocks, the device after releasing all.
    """

    def __init__(
        self,
        device: DeviceMemory,
        statistics: DeviceStatistics,
        pools: tuple[BlockPool, BlockPool],
        synchronize: Callable[[], None],
    ) -> None:
        """Obtain memory of `device` for the large and the small of `pools`; `synchronize` completes requested frees."""
        self._device = device
        self._statistics = statistics
        self._large, self._small = pools
        self._synchronize = synchronize
        self._classic = ClassicSegments(device, statistics)
        self._expandable = ExpandableSegments(device)
        self.apply(Settings())

    def apply(self, settings: Settings) -> None:
        """Go on under `settings`; the segments that exist stay as they are."""
        self._settings = settings
        self._classic.apply(settings)
        self._expandable.apply(settings)
        self.segments: SegmentKind = self._expandable if settings.expandable_segments else self._classic

    @property
    def collects_garbage(self) -> bool:
        """Whether garbage is collected: it needs a threshold, and a cap that it is a part of."""
        return self._settings.garbage_collection_threshold > 0 and self._device.allowed_bytes is not None

    def alloc_block(self, pool: BlockPool, stream: int, size: int, nbytes: int) -> Block:
        """A block of at least `size` bytes for a request of `nbytes`, and out of its pool.

        Raises:
            DeviceOutOfMemory: nothing helps.
        """
        if self.collects_garbage:
            self._collect_garbage()
        block = (
            self._try_alloc_block(pool, stream, size, nbytes)
            or self._alloc_after_oversize_release(pool, stream, size, nbytes)
            or self._alloc_after_release(pool, stream, size, nbytes)
        )
        if block is None:
            self._statistics.num_ooms += 1
            raise self._out_of_memory(size, nbytes)
        return block

    def release_cached_blocks(self) -> int:
        """Return every unsplit cached segment and every free page to the device; the bytes given back."""
        self._statistics.num_sync_all_streams += 1
        self._synchronize()
        return sum(
            kind.release_blocks(pool)
            for pool in (self._large, self._small)
            for kind in (self._classic, self._expandable)
        )

    def _try_alloc_block(self, pool: BlockPool, stream: int, size: int, nbytes: int) -> Block | None:
        """One attempt, `alloc_block` in C++: the cap, the rejection ahead of time, the device."""
        if not self._device.allows(self._allocation_size(size)):
            return None
        if self._settings.throw_on_cudamalloc_oom:
            self._reject_beyond_fraction(size, nbytes)
        return self.segments.alloc_block(pool, stream, size)

    def _reject_beyond_fraction(self, size: int, nbytes: int) -> None:
        """As in C++, this looks at the fraction in the settings, not at the cap, which has let the request pass."""
        if not self._device.is_within(self._settings.per_process_memory_fraction, self._allocation_size(size)):
            self._statistics.num_oom_rejections += 1
            raise self._out_of_memory(size, nbytes, is_rejected=True)

    def _alloc_after_oversize_release(self, pool: BlockPool, stream: int, size: int, nbytes: int) -> Block | None:
        max_split_size = self._settings.max_split_size_bytes
        if max_split_size is None:
            return None
        if not release_available_cached_blocks(pool, stream, size, max_split_size, self._classic.release_block):
            return None
        return self._try_alloc_block(pool, stream, size, nbytes)

    def _alloc_after_release(self, pool: BlockPool, stream: int, size: int, nbytes: int) -> Block | None:
        self.release_cached_blocks()
        self._statistics.num_alloc_retries += 1
        return self._try_alloc_block(pool, stream, size, nbytes)

    def _collect_garbage(self) -> None:
        assert self._device.allowed_bytes is not None
        threshold_bytes = int(self._settings.garbage_collection_threshold * self._device.allowed_bytes)
        collect_garbage(self._large, self._device.reserved_bytes - threshold_bytes, self._classic.release_block)

    def _allocation_size(self, size: int) -> int:
        return get_allocation_size(size, self._settings.large_segment_size_bytes)

    def _out_of_memory(self, size: int, nbytes: int, *, is_rejected: bool = False) -> DeviceOutOfMemory:
        return DeviceOutOfMemory(
            requested_bytes=nbytes,
            segment_bytes=self._allocation_size(size),
            allocated_bytes=self._statistics.all.allocated_bytes.current,
            reserved_bytes=self._device.reserved_bytes,
            outside_bytes=self._device.outside_bytes,
            allowed_bytes=self._device.allowed_bytes,
            is_rejected=is_rejected,
        )
