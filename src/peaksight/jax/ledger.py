"""The arrays of a job over time, and the calls of its programs, as the records of a capture."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from peaksight.allocator.bfc import BfcAllocator, Chunk, rounded_bytes
from peaksight.gpus import Room
from peaksight.jax.dump import CompiledProgram
from peaksight.jax.entries import Entry, What, what_of
from peaksight.jax.pool import Pool
from peaksight.jax.roles import phase_of
from peaksight.records import Allocation, Capture, Failure, Phase, Role, StepPeak

# Of an array that was put on the card, or made outside of jit, its use tells more.
_UNTOLD = (Role.UNKNOWN, Role.INPUT)


class Ledger:
    """Every allocation on one virtual card, in order, and the pool that they come from.

    The pool of the card decides whether the job fits; what the job needs is read from one without a limit, which
    differs from it in size alone. `at` is the person's line that runs, for what has none of its own.
    """

    def __init__(self, pool: Pool) -> None:
        """Start with an empty pool."""
        self.step = 0
        self.phase = Phase.INIT
        self.tick = 0
        self.at = ""
        self.failure: Failure | None = None
        self.call_peak_bytes = 0
        self.peak_bytes = self.peak_tick = 0
        self._pool = pool
        self._limited: BfcAllocator | None = BfcAllocator(pool.bytes, preallocates=pool.preallocates)
        self._unlimited = BfcAllocator(1 << 50, preallocates=pool.preallocates)
        self._limited_chunks: dict[int, Chunk] = {}
        self._allocations: list[Allocation] = []
        self._steps: list[StepPeak] = []
        self._peaks: list[tuple[int, int]] = []

    @property
    def in_use_bytes(self) -> int:
        """What is allocated now, in whole chunks."""
        return self._unlimited.in_use_bytes

    def memory_stats(self) -> dict[str, int]:
        """What `jax.Device.memory_stats()` says of memory in use."""
        peak_bytes = max(self.peak_bytes, self.in_use_bytes)
        return {"bytes_in_use": self.in_use_bytes, "peak_bytes_in_use": peak_bytes, "bytes_limit": self._pool.bytes}

    def allocate(self, num_bytes: int, what: What, *, phase: Phase | None = None, grad: bool = False) -> Entry:
        """An array of `num_bytes`, alive until it is freed."""
        self.tick += 1
        chunk = self._unlimited.allocate(num_bytes)
        assert chunk is not None, "the pool has no limit"
        self._take_limited(num_bytes, what, phase or self.phase)
        entry = Entry(birth=self._birth(num_bytes, chunk.bytes, what, phase or self.phase, grad), chunk=chunk)
        self._allocations.append(entry.birth)
        self._note_peak()
        return entry

    def free(self, entry: Entry) -> None:
        """The array is gone."""
        if entry.chunk is None:
            return
        self.tick += 1
        self._unlimited.free(entry.chunk)
        self._end(entry.birth)
        entry.chunk = None
        if self._limited is not None and (chunk := self._limited_chunks.pop(entry.birth.born, None)):
            self._limited.free(chunk)

    def becomes(self, entry: Entry, what: What) -> None:
        """The array turns out to be for a known purpose, or is written over with one that is; what is known stays."""
        if entry.birth.role in _UNTOLD and what.role not in _UNTOLD:
            place = bisect_left(self._allocations, entry.birth.born, key=lambda each: each.born)
            entry.birth = replace(entry.birth, role=what.role, module=what.module, tensor=what.tensor)
            self._allocations[place] = entry.birth

    def run(self, program: CompiledProgram, name: str, arguments: Sequence[What], *, trains: bool) -> None:
        """The temporary memory of one call, which lives as long as the call: one piece, shown by what is in it.

        `arguments` are those of the call.
        """
        if not program.temporary_bytes:
            return
        whole = What(role=Role.UNKNOWN, tensor="", op="temporary memory not in use", module=name)
        entry = self.allocate(program.temporary_bytes, whole, phase=Phase.OTHER)
        assert entry.chunk is not None
        self._allocations.pop()
        self._show(program, entry.chunk.bytes, whole, arguments, trains=trains)
        if self.peak_tick == entry.birth.born:
            self.peak_tick = self.tick
        born = self._allocations[-1].born
        self.tick += 1
        self._unlimited.free(entry.chunk)
        self._end_after(entry.birth.born, born)
        if self._limited is not None and (chunk := self._limited_chunks.pop(entry.birth.born, None)):
            self._limited.free(chunk)

    def _show(
        self, program: CompiledProgram, chunk_bytes: int, whole: What, arguments: Sequence[What], *, trains: bool
    ) -> None:
        """The buffers of `program` in place of the one chunk that they are in; that of the fullest moment is last."""
        self.tick -= 1
        rest = chunk_bytes - sum(buffer.bytes for buffer in program.buffers)
        if rest:
            self.tick += 1
            self._allocations.append(self._birth(rest, rest, whole, Phase.OTHER, False))
        for buffer in sorted(program.buffers, key=lambda each: each.born):
            self.tick += 1
            what = what_of(buffer, arguments)
            phase, grad = phase_of(buffer.op_name) if trains else (self.phase, False)
            self._allocations.append(self._birth(buffer.bytes, buffer.bytes, what, phase, grad))

    def start_call(self) -> None:
        """Begin to note the most in use, as `call_peak_bytes`."""
        self.call_peak_bytes = self.in_use_bytes

    def end_step(self) -> StepPeak:
        """One call of the training step is over."""
        first = self._steps[-1].last_tick + 1 if self._steps else 1
        peak = max((size for tick, size in self._peaks if tick >= first), default=self.in_use_bytes)
        number = len(self._steps) + 1
        self._steps.append(
            StepPeak(
                step=number,
                first_tick=first,
                last_tick=self.tick,
                backward_began=(),
                peak_allocated_bytes=peak,
                peak_reserved_bytes=peak,
            )
        )
        return self._steps[-1]

    def capture(self, argv: Sequence[str], room: Room, started: float, **facts: object) -> Capture:
        """The record of all that happened; `facts` are further fields of it."""
        peak = self.peak_bytes
        return Capture(
            argv=tuple(argv),
            gpu=room.card.product_name,
            allocations=tuple(self._allocations),
            steps=tuple(self._steps),
            peak_tick=self.peak_tick,
            peak_allocated_bytes=peak,
            peak_reserved_bytes=peak,
            peak_requested_bytes=sum(
                each.requested_bytes
                for each in self._allocations
                if each.born <= self.peak_tick and (each.died is None or each.died > self.peak_tick)
            ),
            peak_active_bytes=peak,
            pool_bytes=self._pool.bytes,
            preallocated=self._pool.preallocates,
            writes=(),
            seconds=time.perf_counter() - started,
            failures=() if self.failure is None else (self.failure,),
            fatal=None if self.failure is None else 0,
            **facts,  # type: ignore[arg-type]
        )

    def _birth(self, requested: int, allocated: int, what: What, phase: Phase, grad: bool) -> Allocation:
        return Allocation(
            born=self.tick,
            died=None,
            requested_bytes=requested,
            allocated_bytes=allocated,
            stream=0,
            step=self.step,
            phase=phase,
            role=what.role,
            grad_enabled=grad,
            op=what.op,
            module=what.module,
            source=what.source or self.at,
            library=what.library,
            tensor=what.tensor,
        )

    def _end(self, birth: Allocation) -> None:
        self._end_after(birth.born, birth.born)

    def _end_after(self, first: int, last: int) -> None:
        """What was born from tick `first` to `last` is freed at the present one."""
        for place in range(len(self._allocations) - 1, -1, -1):
            each = self._allocations[place]
            if each.born < first:
                return
            if each.born <= last and each.died is None:
                self._allocations[place] = replace(each, died=self.tick)

    def _note_peak(self) -> None:
        self._peaks.append((self.tick, self.in_use_bytes))
        self.call_peak_bytes = max(self.call_peak_bytes, self.in_use_bytes)
        if self.in_use_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_tick = self.in_use_bytes, self.tick

    def _take_limited(self, num_bytes: int, what: What, phase: Phase) -> None:
        """Allocate from the pool of the card as well, until it first has nothing."""
        if self._limited is None:
            return
        chunk = self._limited.allocate(num_bytes)
        if chunk is not None:
            self._limited_chunks[self.tick] = chunk
            return
        free = self._limited.limit_bytes - self._limited.in_use_bytes
        self.failure = Failure(
            tick=self.tick - 1,
            message=f"RESOURCE_EXHAUSTED: Out of memory while trying to allocate {rounded_bytes(num_bytes)} bytes.",
            requested_bytes=num_bytes,
            allocated_bytes=self._limited.in_use_bytes,
            reserved_bytes=self._pool.bytes,
            step=self.step,
            phase=phase,
            op=what.op,
            module=what.module,
            source=what.source or self.at,
            library=what.library,
            backward_source="",
            free_bytes=free,
        )
        self._limited = None
