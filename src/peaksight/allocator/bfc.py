"""The best-fit allocator with coalescing that XLA puts between JAX and the card.

Mirrors tsl/framework/bfc_allocator.cc: one region as large as the pool or, without preallocation, regions that grow.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

from peaksight.units import MIB

MIN_ALLOCATION_BYTES = 256
MAX_INTERNAL_FRAGMENTATION_BYTES = 128 * MIB
FIRST_REGION_BYTES = 2 * MIB
_NUM_BINS = 21


def rounded_bytes(num_bytes: int) -> int:
    """What an allocation of `num_bytes` takes at least: `BFCAllocator::RoundedBytes`."""
    return max(1, -(-num_bytes // MIN_ALLOCATION_BYTES)) * MIN_ALLOCATION_BYTES


def bin_of(num_bytes: int) -> int:
    """`BFCAllocator::BinNumForSize`: bins double in size."""
    return min(_NUM_BINS - 1, (num_bytes // MIN_ALLOCATION_BYTES).bit_length() - 1)


@dataclass(slots=True, eq=False)
class Chunk:
    """A piece of a region, free or in use; neighbours are those of the same region."""

    address: int
    bytes: int
    in_use: bool = False
    before: "Chunk | None" = None
    after: "Chunk | None" = None


class BfcAllocator:
    """A pool of `limit_bytes`; `preallocates` takes it as one region, else regions are added as needed.

    `in_use_bytes` counts whole chunks, as `memory_stats()["bytes_in_use"]` does.
    """

    def __init__(self, limit_bytes: int, *, preallocates: bool = True) -> None:
        """Take nothing yet: the first allocation makes the first region."""
        self.limit_bytes = limit_bytes // MIN_ALLOCATION_BYTES * MIN_ALLOCATION_BYTES
        self.in_use_bytes = 0
        self.peak_in_use_bytes = 0
        self.reserved_bytes = 0
        self._next_region_bytes = self.limit_bytes if preallocates else min(self.limit_bytes, FIRST_REGION_BYTES)
        self._free: list[list[tuple[int, int, Chunk]]] = [[] for _ in range(_NUM_BINS)]

    @property
    def largest_free_bytes(self) -> int:
        """The largest chunk that could be handed out, with what the pool can still grow by."""
        free = [size for each in self._free for size, _, _ in each]
        return max([*free, self.limit_bytes - self.reserved_bytes])

    def allocate(self, num_bytes: int) -> Chunk | None:
        """A chunk of at least `num_bytes`, None where no piece is large enough: `AllocateRawInternal`."""
        wanted = rounded_bytes(num_bytes)
        chunk = self._find(wanted)
        if chunk is None and self._extend(wanted):
            chunk = self._find(wanted)
        if chunk is not None:
            self.in_use_bytes += chunk.bytes
            self.peak_in_use_bytes = max(self.peak_in_use_bytes, self.in_use_bytes)
        return chunk

    def free(self, chunk: Chunk) -> None:
        """Give `chunk` back and join it with free neighbours: `FreeAndMaybeCoalesce`."""
        chunk.in_use = False
        self.in_use_bytes -= chunk.bytes
        for first, second in ((chunk, chunk.after), (chunk.before, chunk)):
            if first is not None and second is not None and not first.in_use and not second.in_use:
                chunk = self._joined(first, second, chunk)
        self._insert(chunk)

    def _find(self, wanted: int) -> Chunk | None:
        """The smallest free chunk that holds `wanted`, the lowest of equals: `FindChunkPtr`."""
        for each in self._free[bin_of(wanted) :]:
            place = bisect_left(each, wanted, key=lambda entry: entry[0])
            if place < len(each):
                _, _, chunk = each.pop(place)
                self._split(chunk, wanted)
                chunk.in_use = True
                return chunk
        return None

    def _split(self, chunk: Chunk, wanted: int) -> None:
        """Cut off what is not `wanted`, unless it is less than that and under 128 MiB: `SplitChunk`."""
        if chunk.bytes < 2 * wanted and chunk.bytes - wanted < MAX_INTERNAL_FRAGMENTATION_BYTES:
            return
        rest = Chunk(chunk.address + wanted, chunk.bytes - wanted, before=chunk, after=chunk.after)
        if rest.after is not None:
            rest.after.before = rest
        chunk.after, chunk.bytes = rest, wanted
        self._insert(rest)

    def _extend(self, wanted: int) -> bool:
        """Add a region: `Extend`."""
        available = self.limit_bytes - self.reserved_bytes
        if wanted > available:
            return False
        grown = self._next_region_bytes < wanted
        while self._next_region_bytes < wanted:
            self._next_region_bytes *= 2
        size = min(self._next_region_bytes, available)
        if not grown:
            self._next_region_bytes *= 2
        self._insert(Chunk(self.reserved_bytes, size))
        self.reserved_bytes += size
        return True

    def _insert(self, chunk: Chunk) -> None:
        insort(self._free[bin_of(chunk.bytes)], (chunk.bytes, chunk.address, chunk), key=lambda entry: entry[:2])

    def _joined(self, first: Chunk, second: Chunk, released: Chunk) -> Chunk:
        """`first` with `second` added to it; of the two only `released` is in no bin."""
        other = second if first is released else first
        self._free[bin_of(other.bytes)].remove((other.bytes, other.address, other))
        first.bytes += second.bytes
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first
