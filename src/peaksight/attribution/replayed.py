"""A capture's calls repeated on another card: one with more memory, or with less."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from peaksight.allocator import Block, CachingAllocator, DeviceOutOfMemory, Settings, parse_settings
from peaksight.records import Action, Allocation, AllocatorCall, Capture
from peaksight.records.recording import HeldSegment

Event = Allocation | AllocatorCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedFailure:
    """What the other card cannot serve: an allocation, or a call that takes memory outside the allocator.

    `error` is None in the second case.
    """

    event: Allocation | AllocatorCall
    error: DeviceOutOfMemory | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How a replay went: to its end, or to the first `failure`.

    `needed_bytes` is the most that was reserved and outside the allocator at the same time.
    """

    failure: ReplayedFailure | None
    num_alloc_retries: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    needed_bytes: int


def replay_capture(capture: Capture, *, limit_bytes: int | None, allowed_bytes: int | None = None) -> Replayed:
    """Repeat `capture` on a card that gives `limit_bytes` (None: everything).

    `allowed_bytes` is what PyTorch may reserve of it; None is what the script itself allowed. Of a failure that the
    script got over, what it did to the cache is repeated. Where the other card fails earlier in the same step, the
    script gets over that as well: what else it would have allocated before is left out.
    What an operator does without on a full card fails nothing; what the run itself did without is asked for again, and
    given back at once.
    """
    return Replayer(capture, limit_bytes, allowed_bytes).run()


def segments_when_reserved(capture: Capture, num_bytes: int) -> tuple[HeldSegment, ...]:
    """The segments of `capture` on a card that gives everything, when `num_bytes` are reserved for the first time."""
    return Replayer(capture, None, None).segments_when_reserved(num_bytes)


class Replayer:
    """Repeats a capture event by event on `allocator`; by birth, `blocks` has those that are alive.

    `awaiting` has those whose tensor died while other streams used them.
    """

    def __init__(
        self,
        capture: Capture,
        limit_bytes: int | None,
        allowed_bytes: int | None = None,
        total_bytes: int | None = None,
    ) -> None:
        """As `replay_capture`, before the first event; `total_bytes` is the memory of the card, where it matters."""
        self._capture = capture
        self._keeps_allowed = allowed_bytes is not None
        self.allocator = CachingAllocator(limit_bytes=limit_bytes, total_bytes=total_bytes)
        self.allocator.allowed_bytes = allowed_bytes
        self.blocks: dict[int, Block] = {}
        self.awaiting: dict[int, Block] = {}
        self._needed_bytes = 0
        self._got_over = [f for index, f in enumerate(capture.failures) if index != capture.fatal]
        self._left_out_until = 0

    def run(self) -> Replayed:
        """Go on to the end, or to what fails."""
        failure = next((failure for failure in map(self.step, events_of(self._capture)) if failure), None)
        allocator = self.allocator
        return Replayed(
            failure=failure,
            num_alloc_retries=allocator.memory_stats()["num_alloc_retries"],
            peak_allocated_bytes=allocator.peak_allocated_bytes,
            peak_reserved_bytes=allocator.peak_reserved_bytes,
            needed_bytes=self._needed_bytes,
        )

    def segments_when_reserved(self, num_bytes: int) -> tuple[HeldSegment, ...]:
        """Go on until so many are reserved, or to the end, and look at the segments."""
        events = events_of(self._capture)
        while self.allocator.reserved_bytes < num_bytes and (event := next(events, None)):
            self.step(event)
        places = {allocation.born: place for place, allocation in enumerate(self._capture.allocations)}
        place_at = {block.address: places[born] for born, block in self.blocks.items()}
        return tuple(
            HeldSegment(
                address=segment.address,
                total_bytes=segment.total_size,
                is_expandable=segment.is_expandable,
                allocations=tuple(place_at[b.address] for b in segment.blocks if b.address in place_at),
            )
            for segment in self.allocator.segments()
        )

    def step(self, event: tuple[int, Event]) -> ReplayedFailure | None:
        """Repeat one event of `events_of`; what fails of it changes nothing but the cache."""
        tick, happened = event
        if isinstance(happened, AllocatorCall):
            return self._call(happened)
        if tick == happened.born:
            return self._malloc(happened)
        if tick == happened.died:
            self._free(happened)
        elif happened.born in self.awaiting:
            self.allocator.free_completed(self.awaiting.pop(happened.born))
        return None

    def _free(self, allocation: Allocation) -> None:
        block = self.blocks.pop(allocation.born, None)
        if block is None:
            return
        self.allocator.free_requested(block)
        if allocation.reusable is None:
            self.allocator.free_completed(block)
        else:
            self.awaiting[allocation.born] = block

    def _malloc(self, allocation: Allocation) -> ReplayedFailure | None:
        if allocation.born < self._left_out_until:
            return None
        try:
            block = self.allocator.malloc(allocation.requested_bytes, allocation.stream)
        except DeviceOutOfMemory as error:
            if allocation.dispensable:
                return None
            self._left_out_until = self._got_over_at(allocation)
            return None if self._left_out_until else ReplayedFailure(event=allocation, error=error)
        finally:
            self._forget_completed()
        self.blocks[allocation.born] = block
        self._note_need()
        return None

    def _got_over_at(self, allocation: Allocation) -> int:
        """The tick of the failure that ended the attempt of `allocation`, 0 if none did."""
        after = (f.tick for f in self._got_over if f.tick > allocation.born and f.step == allocation.step)
        return next(after, 0)

    def _call(self, call: AllocatorCall) -> ReplayedFailure | None:
        match call.action:
            case Action.EMPTY_CACHE | Action.FAILED:
                self.allocator.empty_cache()
                self._forget_completed()
            case Action.DONE_WITHOUT:
                self._attempt(call)
            case Action.ALLOWED if not self._keeps_allowed:
                self.allocator.allowed_bytes = call.bytes or None
            case Action.SETTINGS:
                self.allocator.apply(_settings(call.what))
            case Action.OUTSIDE if not self.allocator.take_outside(call.bytes):
                return ReplayedFailure(event=call, error=None)
        self._note_need()
        return None

    def _attempt(self, call: AllocatorCall) -> None:
        with suppress(DeviceOutOfMemory):
            self.allocator.free(self.allocator.malloc(call.bytes, call.stream))
        self._forget_completed()

    def _forget_completed(self) -> None:
        """Where the allocator has waited for all streams."""
        if self.awaiting and not self.allocator.awaiting_free_bytes:
            self.awaiting.clear()

    def _note_need(self) -> None:
        self._needed_bytes = max(self._needed_bytes, self.allocator.reserved_bytes + self.allocator.outside_bytes)


def _settings(text: str) -> Settings:
    """The settings, less the memory fraction: what it allowed is an ALLOWED call."""
    return replace(parse_settings(text), per_process_memory_fraction=1.0)


def events_of(capture: Capture) -> Iterator[tuple[int, Event]]:
    """Births, deaths and calls in the order of their ticks; a block that others used comes once more as `reusable`."""
    births: list[tuple[int, Event]] = [(a.born, a) for a in capture.allocations]
    deaths: list[tuple[int, Event]] = [(a.died, a) for a in capture.allocations if a.died is not None]
    returns: list[tuple[int, Event]] = [(a.reusable, a) for a in capture.allocations if a.reusable is not None]
    calls: list[tuple[int, Event]] = [(call.tick, call) for call in capture.calls]
    return iter(sorted(births + deaths + returns + calls, key=lambda event: event[0]))
