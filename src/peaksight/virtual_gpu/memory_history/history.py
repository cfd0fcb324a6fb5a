"""What `torch.cuda.memory._record_memory_history` records: the allocator's events, and the stack behind each block.

Mirrors `recordHistory`, `record_trace` and `maybeGatherContext` of c10/cuda/CUDACachingAllocator.cpp.
"""

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from peaksight.allocator import CachingAllocator
from peaksight.allocator.blocks import Block
from peaksight.allocator.segment_changes import SegmentChanges
from peaksight.virtual_gpu.memory_history.stacks import Stack, current_stack

ACTIONS = frozenset(
    "alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap snapshot oom "
    "annotate".split()
)


class RecordContext(IntEnum):
    """For which events a stack is kept: each level adds to the one before."""

    NEVER = 0
    STATE = 1  # blocks that are in use
    ALLOC = 2  # allocations in the trace
    ALL = 3  # frees in the trace


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One event: `addr` is an address, or the free bytes of the device for `oom`; `time_us` counts from the epoch."""

    action: str
    addr: int
    size: int
    stream: int
    time_us: int
    stack: Stack | None
    user_metadata: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """The `START` or `END` of what the script, or torch, calls `name` with `torch.profiler.record_function`."""

    name: str
    stage: str
    time_us: int


class History:
    """Hears of every event of an allocator once recording was asked for, and keeps what was asked for."""

    def __init__(self, allocator: CachingAllocator) -> None:
        """Nothing is recorded yet."""
        self.entries: deque[TraceEntry] = deque(maxlen=1)
        self.annotations: deque[Annotation] = deque(maxlen=1)
        self.user_metadata = ""
        self._allocator = allocator
        self._segments = SegmentChanges(allocator)
        self._enabled = False
        self._context = RecordContext.NEVER
        self._skipped: frozenset[str] = frozenset()
        self._stacks: dict[Stack, Stack] = {}
        self._block_stacks: dict[Block, Stack] = {}
        self._free_stacks: dict[int, Stack | None] = {}
        self._segment_stacks: dict[int, Stack] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether it records."""
        return self._enabled

    def record(
        self, *, enabled: bool, context: RecordContext, max_entries: int, clear: bool, skip_actions: Collection[str]
    ) -> None:
        """From here on, keep the last `max_entries` events but for `skip_actions`; None of them if not `enabled`.

        What was recorded before stays, unless recording ends or `clear` is set. The stacks of blocks stay.
        """
        self._enabled = enabled
        self._context = context if enabled else RecordContext.NEVER
        self._skipped = frozenset(skip_actions)
        if clear or not enabled:
            self.entries.clear()
            self.annotations.clear()
        self.entries = deque(self.entries, maxlen=max(1, max_entries))
        self.annotations = deque(self.annotations, maxlen=max(1, max_entries))

    # Events.

    def allocated(self, block: Block) -> None:
        """`block` was handed out."""
        stack = self._stack(RecordContext.STATE)
        self._note_segments(stack)
        if stack is not None:
            self._block_stacks[block] = stack
        self._note("alloc", block.address, block.requested_size, block.stream, stack)

    def free_requested(self, block: Block) -> None:
        """The tensor of `block` died."""
        made_at = self._block_stacks.pop(block, None)
        stack = _first(self._stack(RecordContext.ALL), made_at)
        self._free_stacks[block.address] = stack
        self._note("free_requested", block.address, block.requested_size, block.stream, stack)

    def free_completed(self, block: Block, requested_bytes: int) -> None:
        """`block`, of which `requested_bytes` were asked for, is about to be taken back, or was just now."""
        stack = self._free_stacks.pop(block.address, None)
        self._note("free_completed", block.address, requested_bytes, block.stream, stack)

    def cache_emptied(self) -> None:
        """Cached segments were given back to the device."""
        self._note_segments(self._stack(RecordContext.ALL))

    def failed(self, size: int, stream: int, *, device_free_bytes: int) -> None:
        """The device could not serve `size` bytes, although every cached segment was given back to it."""
        stack = self._stack(RecordContext.STATE)
        self._note_segments(stack)
        self._note("oom", device_free_bytes, size, stream, stack)

    def snapshot_taken(self, active_bytes: int) -> None:
        """A snapshot was taken while blocks of `active_bytes` were in use; it is in the next snapshot."""
        self._note("snapshot", 0, active_bytes, 0, None)

    def annotated(self, block: Block, metadata: str) -> None:
        """`metadata` was attached to a `block` that is in use."""
        stack = self._stack(RecordContext.ALLOC)
        self._note("annotate", block.address, block.requested_size, block.stream, stack, metadata)

    def passed(self, name: str, stage: str) -> None:
        """The script passed the `START` or the `END` of what it calls `name`."""
        if self._enabled:
            self.annotations.append(Annotation(name, stage, _now_us()))

    # Stacks.

    def block_stack(self, block: Block) -> Stack | None:
        """Where `block`, which is in use, was asked for."""
        return self._block_stacks.get(block)

    def segment_stack(self, address: int) -> Stack | None:
        """Where the segment at `address` was asked for."""
        return self._segment_stacks.get(address)

    def _stack(self, level: RecordContext) -> Stack | None:
        """The running stack if `level` asks for one. Equal ones are one object: a run repeats its few."""
        if self._context < level:
            return None
        stack = current_stack()
        return self._stacks.setdefault(stack, stack)

    def _note_segments(self, stack: Stack | None) -> None:
        for action, address, size, stream in self._segments.since_last_time():
            if action in ("segment_free", "segment_unmap"):
                made_at = self._segment_stacks.pop(address, None)
                self._note(action, address, size, stream, _first(stack, made_at))
                continue
            if stack is not None:
                self._segment_stacks[address] = stack
            self._note(action, address, size, stream, stack)

    def _note(
        self, action: str, addr: int, size: int, stream: int, stack: Stack | None, metadata: str | None = None
    ) -> None:
        if self._enabled and action not in self._skipped:
            kept = stack if self._context >= RecordContext.ALLOC else None
            metadata = self.user_metadata if metadata is None else metadata
            self.entries.append(TraceEntry(action, addr, size, stream, _now_us(), kept, metadata))


def _first(stack: Stack | None, otherwise: Stack | None) -> Stack | None:
    """`stack` if one was taken: an empty one is that of a thread without Python frames."""
    return otherwise if stack is None else stack


def _now_us() -> int:
    return time.time_ns() // 1000
