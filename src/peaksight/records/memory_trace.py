"""What an allocator did in a run, event by event, and what it held in the end: as a memory snapshot has it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from peaksight.records.allocations import Category
from peaksight.records.capture import Capture

# The row of what belongs to no allocation.
NO_ROW = -1


class TracedEvent(NamedTuple):
    """One event in the words of `torch.cuda.memory._snapshot()`: `alloc`, `free_requested`, `segment_map` and so on.

    `address` is what the card had left where `action` is `oom`, and `row` is then that of a failure of the capture; of
    an event of a block it is that of its allocation. `size_bytes` is what was asked for, of a segment its size.
    """

    action: str
    address: int
    size_bytes: int
    stream: int
    row: int = NO_ROW


class TracedBlock(NamedTuple):
    """One block at the end; `state` is torch's word, `row` that of its allocation, NO_ROW where it is free."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: str
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSegment:
    """One segment at the end, with all of its blocks by address; `pool` is `small` or `large`."""

    address: int
    size_bytes: int
    stream: int
    pool: str
    is_expandable: bool
    blocks: tuple[TracedBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTrace:
    """The whole run of `capture` on its card; `categories` are those of its allocations.

    `settings` are the allocator's at the end, as a snapshot tells them.
    """

    capture: Capture
    categories: tuple[Category, ...]
    events: tuple[TracedEvent, ...]
    segments: tuple[TracedSegment, ...]
    settings: dict[str, Any]
