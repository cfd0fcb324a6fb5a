"""Where blocks come from when the pools have none: segments made by cudaMalloc."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from peaksight.allocator.blocks import INACTIVE, UNMAPPED, Block
from peaksight.allocator.device import DeviceMemory
from peaksight.allocator.pools import BlockPool
from peaksight.allocator.settings import Settings
from peaksight.allocator.sizes import MIN_BLOCK_SIZE, SMALL_SIZE, get_allocation_size
from peaksight.allocator.statistics import DeviceStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive memory obtained from the device, and the blocks that it is divided into.

    `pool` is `small` or `large`. Of an expandable segment, each mapped range is one.
    """

    address: int
    total_size: int
    stream: int
    pool: str
    is_expandable: bool
    blocks: tuple[Block, ...]


def segments_from(head: Block) -> Iterator[Segment]:
    """The segment that starts with the block `head`; the mapped ranges of an expandable one."""
    for is_unmapped, run in groupby(_from(head), lambda block: block.state is UNMAPPED):
        if not is_unmapped:
            blocks = tuple(run)
            yield Segment(
                address=blocks[0].address,
                total_size=sum(block.size for block in blocks),
                stream=head.stream,
                pool=head.pool.name,
                is_expandable=head.page_size > 0,
                blocks=blocks,
            )


def _from(block: Block | None) -> Iterator[Block]:
    while block is not None:
        yield block
        block = block.next


class SegmentKind(Protocol):
    """What differs between classic and expandable segments."""

    def alloc_block(self, pool: BlockPool, stream: int, size: int) -> Block | None:
        """A block of at least `size` bytes with memory from the device; None if the device has not enough."""

    def should_split(self, pool: BlockPool, size: int, remaining: int) -> bool:
        """Whether `remaining` bytes behind a request of `size` bytes become a free block of their own."""

    def release_blocks(self, pool: BlockPool) -> int:
        """Give the free memory of `pool` in this kind of segments back to the device, and return the bytes."""


class ClassicSegments:
    """Segments of a fixed size, one cudaMalloc each: the default of PyTorch."""

    def __init__(self, device: DeviceMemory, statistics: DeviceStatistics) -> None:
        """Make segments out of `device`, under the default settings."""
        self._device = device
        self._oversize_segments = statistics.oversize_segments
        self.apply(Settings())

    def apply(self, settings: Settings) -> None:
        """Go on under `settings`."""
        self._max_split_size = settings.max_split_size
        self._large_segment_size = settings.large_segment_size_bytes

    def alloc_block(self, pool: BlockPool, stream: int, size: int) -> Block | None:
        """A new segment as one block; None if the device has not enough."""
        segment_size = get_allocation_size(size, self._large_segment_size)
        if not self._device.reserve(pool, segment_size):
            return None
        for statistics in pool.statistics:
            statistics.segment.increase(1)
        if segment_size >= self._max_split_size:
            self._oversize_segments.increase(1)
        address = self._device.segment_address(segment_size)
        block = Block(address, segment_size, stream, pool, INACTIVE)
        pool.heads[block] = None
        return block

    def should_split(self, pool: BlockPool, size: int, remaining: int) -> bool:
        """In the large pool a rest of up to 1 MiB stays with the block, and so does any in an oversize block."""
        if pool.is_small:
            return remaining >= MIN_BLOCK_SIZE
        return remaining > SMALL_SIZE and size < self._max_split_size

    def release_blocks(self, pool: BlockPool) -> int:
        """Give every segment of `pool` back that is one free block, and return the bytes."""
        unsplit = [block for block in pool.free_blocks() if not block.is_split]
        for block in unsplit:
            self.release_block(block)
        return sum(block.size for block in unsplit)

    def release_block(self, block: Block) -> None:
        """Give the segment back that is one free `block`."""
        pool = block.pool
        pool.remove(block)
        del pool.heads[block]
        self._device.release(pool, block.size)
        self._device.segment_address.release(block.address, block.size)
        for statistics in pool.statistics:
            statistics.segment.current -= 1
        if block.size >= self._max_split_size:
            self._oversize_segments.current -= 1
