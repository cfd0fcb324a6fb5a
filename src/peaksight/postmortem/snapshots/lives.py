"""From the events of one device to the life of every block, and what was allocated and reserved in between."""

from array import array
from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass, field

from peaksight.allocator import Settings
from peaksight.allocator.sizes import MIN_BLOCK_SIZE, SMALL_SIZE, round_size, roundup_power2
from peaksight.postmortem.snapshots.ranges import Ranges
from peaksight.postmortem.snapshots.rewinding import Beginning
from peaksight.postmortem.snapshots.tables import Block, Did, Event, Trace

ALIVE = -1


@dataclass(frozen=True, slots=True)
class OutOfMemoryEvent:
    """A request that the card could not serve; `free_bytes` is what the card had left."""

    tick: int
    requested_bytes: int
    free_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    stack: int


@dataclass(slots=True)
class Lives:
    """Columns of blocks in order of birth; ticks count the events of the trace, 0 is before the first.

    `died` is the tick at which a block was freed, ALIVE if none. The first `num_before` were there before the
    recording. `num_inexact` of all have a size that other blocks around them may have made larger.
    `allocated_after` and `reserved_after` are what was there after each tick.
    """

    address: "array[int]" = field(default_factory=lambda: array("Q"))
    born: "array[int]" = field(default_factory=lambda: array("q"))
    died: "array[int]" = field(default_factory=lambda: array("q"))
    requested: "array[int]" = field(default_factory=lambda: array("q"))
    allocated: "array[int]" = field(default_factory=lambda: array("q"))
    stream: "array[int]" = field(default_factory=lambda: array("i"))
    stack: "array[int]" = field(default_factory=lambda: array("i"))
    num_before: int = 0
    num_inexact: int = 0
    failures: list[OutOfMemoryEvent] = field(default_factory=list)
    allocated_after: "array[int]" = field(default_factory=lambda: array("q"))
    reserved_after: "array[int]" = field(default_factory=lambda: array("q"))
    peak_requested_bytes: int = 0
    peak_active_bytes: int = 0

    @property
    def peak_tick(self) -> int:
        """The first tick at which most was allocated."""
        return self.allocated_after.index(max(self.allocated_after))

    def most_between(self, first: int, last: int) -> tuple[int, int]:
        """The most that was allocated and reserved after one of the ticks from `first` to `last`."""
        return max(self.allocated_after[first : last + 1]), max(self.reserved_after[first : last + 1])

    def add(self, tick: int, block: Block, stream: int) -> int:
        """A block handed out at `tick`; its row."""
        row = len(self.born)
        self.address.append(block.address or 0)
        self.born.append(tick)
        self.died.append(ALIVE)
        self.requested.append(block.requested_bytes)
        self.allocated.append(block.nbytes)
        self.stream.append(stream)
        self.stack.append(block.stack)
        return row


def follow(trace: Trace, beginning: Beginning, settings: Settings) -> Lives:
    """The lives of the blocks of one device, under the `settings` that the snapshot tells."""
    follower = _Follower(beginning, settings)
    steps = follower.steps(beginning.freed)
    for tick, event in enumerate(trace, start=1):
        step = steps.get(event.action)
        if step is not None:
            step(tick, event)
        follower.note()
    return follower.lives


class _Follower:
    """The state of the allocator between two events."""

    def __init__(self, beginning: Beginning, settings: Settings) -> None:
        self.lives = Lives()
        self._ranges: Ranges = beginning.ranges
        self._final_blocks = beginning.final_blocks
        self._settings = settings
        self._rows: dict[int, int] = {}
        self._occupied: list[int] = sorted(beginning.blocks)
        self._allocated = self._requested = self._active = 0
        self._begin(beginning)

    def steps(self, freed: Did) -> dict[int, Callable[[int, Event], None]]:
        """What each action does, where `freed` ends a block."""
        return {
            Did.ALLOC: self._alloc,
            Did.FREE_REQUESTED: self._free_requested,
            Did.SEGMENT_ALLOC: self._segment,
            Did.SEGMENT_MAP: self._segment,
            Did.SEGMENT_FREE: self._segment_free,
            Did.SEGMENT_UNMAP: self._segment_free,
            Did.OOM: self._oom,
            freed: self._free_completed,
        }

    def note(self) -> None:
        """A tick has passed."""
        self.lives.allocated_after.append(self._allocated)
        self.lives.reserved_after.append(self._ranges.total_bytes)

    def _begin(self, beginning: Beginning) -> None:
        for address in self._occupied:
            block = beginning.blocks[address]
            if not block.nbytes:
                block = block._replace(nbytes=self._rounded(block.requested_bytes))
                self.lives.num_inexact += 1
            self._born(0, block, 0)
            if not block.is_allocated:
                self._died(0, self._rows[address])
        self.lives.num_before = len(self._rows)
        self.note()

    def _alloc(self, tick: int, event: Event) -> None:
        if event.address in self._rows:
            self._free_completed(tick, event)
        block = self._final_blocks.get(tick - 1)
        if block is None:
            nbytes = self._block_size(event.address, event.nbytes)
            block = Block(event.address, nbytes, event.nbytes, True, True, event.stack)
        insort(self._occupied, event.address)
        self._born(tick, block._replace(stack=event.stack if event.stack >= 0 else block.stack), event.stream)

    def _born(self, tick: int, block: Block, stream: int) -> None:
        self._rows[block.address or 0] = self.lives.add(tick, block, stream)
        self._allocated += block.nbytes
        self._active += block.nbytes
        self._requested += block.requested_bytes
        self.lives.peak_active_bytes = max(self.lives.peak_active_bytes, self._active)
        self.lives.peak_requested_bytes = max(self.lives.peak_requested_bytes, self._requested)

    def _free_requested(self, tick: int, event: Event) -> None:
        row = self._rows.get(event.address)
        if row is not None:
            self._died(tick, row)

    def _died(self, tick: int, row: int) -> None:
        if self.lives.died[row] == ALIVE:
            self.lives.died[row] = tick
            self._allocated -= self.lives.allocated[row]

    def _free_completed(self, tick: int, event: Event) -> None:
        row = self._rows.pop(event.address, None)
        if row is None:
            return
        self._died(tick, row)
        self._active -= self.lives.allocated[row]
        self._requested -= self.lives.requested[row]
        del self._occupied[bisect_right(self._occupied, event.address) - 1]

    def _segment(self, tick: int, event: Event) -> None:
        self._ranges.add(event.address, event.nbytes, is_expandable=event.action == Did.SEGMENT_MAP)

    def _segment_free(self, tick: int, event: Event) -> None:
        self._ranges.remove(event.address, event.nbytes)

    def _oom(self, tick: int, event: Event) -> None:
        self.lives.failures.append(
            OutOfMemoryEvent(
                tick=tick,
                requested_bytes=event.nbytes,
                free_bytes=event.address,
                allocated_bytes=self._allocated,
                reserved_bytes=self._ranges.total_bytes,
                stack=event.stack,
            )
        )

    def _rounded(self, nbytes: int) -> int:
        divisions = self._settings.roundup_power2_divisions
        return roundup_power2(divisions, max(nbytes, 1)) if max(divisions) > 1 else round_size(max(nbytes, 1))

    def _block_size(self, address: int, requested_bytes: int) -> int:
        """The rounded size, and what is left behind it where the allocator does not split it off."""
        size = self._rounded(requested_bytes)
        segment = self._ranges.covering(address)
        if segment is None:
            return size
        _, end, is_expandable = segment
        following = bisect_right(self._occupied, address)
        if following < len(self._occupied):
            end = min(end, self._occupied[following])
        remaining = end - address - size
        return size if remaining <= 0 or self._splits(size, remaining, is_expandable) else size + remaining

    def _splits(self, size: int, remaining: int, is_expandable: bool) -> bool:
        """As `should_split` of c10/cuda/CUDACachingAllocator.cpp."""
        if is_expandable or size <= SMALL_SIZE:
            return remaining >= MIN_BLOCK_SIZE
        return size < self._settings.max_split_size and remaining > SMALL_SIZE
