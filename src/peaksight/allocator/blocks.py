"""A block: a piece of a segment, in use or free, linked to its neighbours."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peaksight.allocator.pools import BlockPool


class BlockState(StrEnum):
    """What a block is doing, in the words of `torch.cuda.memory._snapshot()`.

    `UNMAPPED` is address space of an expandable segment without memory behind it; snapshots leave it out.
    """

    ACTIVE_ALLOCATED = "active_allocated"
    ACTIVE_AWAITING_FREE = "active_awaiting_free"
    INACTIVE = "inactive"
    UNMAPPED = "unmapped"


# Before Python 3.12, looking up a member in its enum costs as much as a function call.
ACTIVE_ALLOCATED, ACTIVE_AWAITING_FREE, INACTIVE, UNMAPPED = BlockState


class Block:
    """`size` bytes at `address`, of which `requested_size` were asked for.

    `prev` and `next` are the neighbours in the same segment. Splitting keeps the left part in this object, merging
    keeps the left object, so the first block of a segment is the same object for as long as the segment lives.
    `page_size` are the bytes that an expandable segment maps as one; 0 in a classic segment. `gc_count_base` is how
    often its pool had been searched when the block came into it, and only there to read while it is in it.
    """

    gc_count_base: int

    __slots__ = (
        "address",
        "gc_count_base",
        "next",
        "page_size",
        "pool",
        "prev",
        "requested_size",
        "size",
        "state",
        "stream",
    )

    def __init__(
        self, address: int, size: int, stream: int, pool: BlockPool, state: BlockState, page_size: int = 0
    ) -> None:
        """Make a block without neighbours."""
        self.address = address
        self.size = size
        self.requested_size = 0
        self.stream = stream
        self.pool = pool
        self.state = state
        self.page_size = page_size
        self.prev: Block | None = None
        self.next: Block | None = None

    @property
    def end(self) -> int:
        """The first address behind the block."""
        return self.address + self.size

    @property
    def is_split(self) -> bool:
        """Whether the block is only a part of its segment."""
        return self.prev is not None or self.next is not None

    def split(self, size: int) -> Block:
        """Keep the first `size` bytes and return the rest as a new block in the same state."""
        rest = Block(self.address + size, self.size - size, self.stream, self.pool, self.state, self.page_size)
        rest.prev, rest.next = self, self.next
        if self.next is not None:
            self.next.prev = rest
        self.next, self.size = rest, size
        return rest

    def absorb_next(self) -> None:
        """Take over the bytes of the right neighbour, which must exist and is gone afterwards."""
        absorbed = self.next
        assert absorbed is not None
        self.size += absorbed.size
        self.next = absorbed.next
        if self.next is not None:
            self.next.prev = self
