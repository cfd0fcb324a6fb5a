"""A run as its allocator would have recorded it: every event with its address, and the segments at the end."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from peaksight.allocator.blocks import ACTIVE_ALLOCATED, Block
from peaksight.allocator.segment_changes import SegmentChanges
from peaksight.allocator.segments import Segment
from peaksight.allocator.settings import settings_in_snapshot, settings_text
from peaksight.attribution.categories import Categories
from peaksight.attribution.devices import first_runs
from peaksight.attribution.replayed import Event, Replayer, events_of
from peaksight.gpus import Room
from peaksight.records import Action, AllocatorCall, Capture, Failure
from peaksight.records.memory_trace import NO_ROW, MemoryTrace, TracedBlock, TracedEvent, TracedSegment

_FREED = ("free_requested", "free_completed")


def memory_traces(captures: Sequence[Capture], room: Room, rank: int) -> tuple[MemoryTrace, ...]:
    """One trace for each card that `rank` used, on a card like that of `room`: of a run that fails up to its failure.

    `captures` are as in `report_on`.
    """
    return tuple(_Tracer(capture, room).trace() for capture in first_runs(captures) if capture.rank == rank)


class _Tracer:
    """Repeats one capture and writes down what its allocator does."""

    def __init__(self, capture: Capture, room: Room) -> None:
        self._capture = capture
        self._replayer = Replayer(capture, room.usable_bytes, total_bytes=room.card.total_bytes)
        self._allocator = self._replayer.allocator
        self._changes = SegmentChanges(self._allocator)
        self._rows = {allocation.born: row for row, allocation in enumerate(capture.allocations)}
        self._streams = {call.tick: call.stream for call in capture.calls if call.action is Action.FAILED}

    def trace(self) -> MemoryTrace:
        """Go through the whole run."""
        capture, categories = self._capture, Categories(self._capture)
        events = tuple(self._events())
        settings = self._allocator.settings
        row_at = {block.address: self._rows[born] for born, block in self._replayer.blocks.items()}
        return MemoryTrace(
            capture=capture,
            categories=tuple(map(categories.of, capture.allocations)),
            events=events,
            segments=tuple(_segment(segment, row_at) for segment in self._allocator.segments()),
            settings={"PYTORCH_CUDA_ALLOC_CONF": settings_text(settings)} | settings_in_snapshot(settings),
        )

    def _events(self) -> Iterator[TracedEvent]:
        failures = deque(enumerate(self._capture.failures))
        for tick, event in events_of(self._capture):
            while failures and failures[0][1].tick < tick:
                yield self._failed(*failures.popleft())
            yield from self._happened(tick, event)
        yield from (self._failed(row, failure) for row, failure in failures)

    def _happened(self, tick: int, event: Event) -> Iterator[TracedEvent]:
        """The segments that came and went for an event, and the event."""
        freed = None if isinstance(event, AllocatorCall) else self._replayer.blocks.get(event.born)
        awaiting = dict(self._replayer.awaiting)
        if self._replayer.step((tick, event)) is not None:
            # The run had no limit from here on: it shows what the job needs.
            self._allocator.lift_limits()
            self._replayer.step((tick, event))
        for born, used in awaiting.items():
            if born not in self._replayer.awaiting:
                yield self._traced("free_completed", used, self._rows[born])
        yield from self._segment_changes()
        if isinstance(event, AllocatorCall):
            return
        row = self._rows[event.born]
        if freed is not None:
            for action in _FREED[: 1 if event.born in self._replayer.awaiting else 2]:
                yield self._traced(action, freed, row)
        elif (block := self._replayer.blocks.get(event.born)) is not None:
            yield self._traced("alloc", block, row)

    def _traced(self, action: str, block: Block, row: int) -> TracedEvent:
        allocation = self._capture.allocations[row]
        return TracedEvent(action, block.address, allocation.requested_bytes, allocation.stream, row)

    def _segment_changes(self) -> Iterator[TracedEvent]:
        for change in self._changes.since_last_time():
            yield TracedEvent(change.action, change.address, change.size, change.stream)

    def _failed(self, row: int, failure: Failure) -> TracedEvent:
        stream = self._streams.get(failure.tick, 0)
        return TracedEvent("oom", failure.free_bytes or 0, failure.requested_bytes, stream, row)


def _segment(segment: Segment, row_at: Mapping[int, int]) -> TracedSegment:
    return TracedSegment(
        address=segment.address,
        size_bytes=segment.total_size,
        stream=segment.stream,
        pool=segment.pool,
        is_expandable=segment.is_expandable,
        blocks=tuple(_block(block, row_at) for block in segment.blocks),
    )


def _block(block: Block, row_at: Mapping[int, int]) -> TracedBlock:
    row = row_at[block.address] if block.state is ACTIVE_ALLOCATED else NO_ROW
    return TracedBlock(block.address, block.size, block.requested_size, block.state.value, row)
