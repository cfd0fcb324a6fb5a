"""A job: the programs that a script calls, planned once each, and what they leave on the card."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
from jax._src import core
from jax.extend.core import ClosedJaxpr

from peaksight.errors import StopSimulation
from peaksight.gpus import Room
from peaksight.jax.changes import Changes
from peaksight.jax.compiling import Call
from peaksight.jax.dump import CompiledProgram
from peaksight.jax.entries import Entry, What
from peaksight.jax.execution import Planned, arguments_of, differentiates, execute, plan
from peaksight.jax.flops import flops_of
from peaksight.jax.inlining import graph_of
from peaksight.jax.ledger import Ledger
from peaksight.jax.notes import Notes
from peaksight.jax.pool import pool_on
from peaksight.jax.tracing import paths_of
from peaksight.records import Phase, Role, StepPeak
from peaksight.records.jax_program import JobFact, ProgramCall

# After so many steps that peak alike the rest of the training says nothing new.
STEADY_STEPS = 200


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a call left on the card."""

    entries: list[Entry]
    shardings: Sequence[Any]


@dataclass(slots=True)
class _Called:
    """A program with what its calls came to."""

    planned: Planned
    phase: Phase
    step: int
    count: int = 0
    peak_bytes: int = 0
    arguments: list[tuple[int, What]] = field(default_factory=list)


class Job:
    """What happens on one virtual card of `room`, of which there are `num_devices`."""

    def __init__(
        self,
        room: Room,
        num_devices: int,
        *,
        max_steps: int | None = None,
        on_step: Callable[[StepPeak], None] | None = None,
        on_compile: Callable[[str, bool], None] | None = None,
        unguarded: AbstractContextManager[Any] | None = None,
        changes: Changes | None = None,
    ) -> None:
        """Nothing has run; `changes` are made to every call."""
        self.room = room
        self.changes = changes or Changes()
        self.ledger = Ledger(pool_on(room))
        self.notes = Notes()
        self._num_devices = num_devices
        self._max_steps = max_steps
        self._on_step = on_step
        self._on_compile = on_compile
        self._unguarded = unguarded or nullcontext()
        self._called: dict[Any, _Called] = {}
        self._peak: Planned | None = None
        self._steps: Counter[Any] = Counter()

    @property
    def at_peak(self) -> Planned | None:
        """The program during whose call the peak was reached, None before any."""
        return self._peak

    def fact(self) -> JobFact:
        """What it came to until now."""
        steps = (called for called in self._called.values() if called.planned.trains)
        taken = (sum(size for size, _ in called.arguments) for called in steps)
        return JobFact(peak_bytes=self.ledger.peak_bytes, state_bytes=max(taken, default=0))

    @property
    def any_program(self) -> Planned | None:
        """That of the peak, else the first one, None before any."""
        return self._peak or next((called.planned for called in self._called.values()), None)

    @property
    def steps(self) -> tuple[Planned, ...]:
        """The programs that differentiate, in order of their first call."""
        return tuple(called.planned for called in self._called.values() if called.planned.trains)

    def edited(self, call: Call) -> Call:
        """`call` with the changes of the plan that it runs under."""
        if not self.changes.edit:
            return call
        with core.set_current_trace(core.eval_trace):
            return self.changes.edited(call)

    def arguments(self, call: Call) -> list[tuple[int, What]]:
        """The size and purpose of each argument."""
        return self._program(call).arguments

    def plan_of(self, call: Call) -> CompiledProgram:
        """The memory of a call, without calling it."""
        return self._program(self.edited(call)).planned.program

    def plain_call(self, closed: ClosedJaxpr, name: str, shardings: Sequence[Any]) -> Call:
        """A call that nothing is donated to."""
        return Call(
            closed=closed,
            name=name,
            donated=(False,) * len(closed.in_avals),
            shardings=tuple(shardings),
            out_shardings=(None,) * len(closed.out_avals),
        )

    def call(self, call: Call, entries: Sequence[Entry | None]) -> Outputs:
        """Run the program of `call` on the card."""
        program = self._program(call)
        is_step = program.planned.trains
        self._enter(program, _phase(is_step, entries, self.ledger.step), is_step=is_step)
        before = self.ledger.peak_bytes
        self.ledger.start_call()
        outputs = execute(program.planned, entries, self.ledger)
        program.count += 1
        program.peak_bytes = max(program.peak_bytes, self.ledger.call_peak_bytes)
        if self.ledger.peak_bytes > before:
            self._peak = program.planned
        if is_step:
            self._end_step(program)
        shardings = program.planned.program.output_shardings or (None,) * len(outputs)
        return Outputs(outputs, shardings)

    def program_calls(self) -> tuple[ProgramCall, ...]:
        """The jitted functions that were called, in order of their first call."""
        return tuple(_record(called) for called in self._called.values() if called.count)

    def _program(self, call: Call) -> _Called:
        key = (id(call.closed), call.donated, tuple(map(_over_cards, call.shardings)))
        if key not in self._called:
            if self._on_compile is not None:
                self._on_compile(call.name, differentiates(call.closed.jaxpr))
            with self._unguarded, core.set_current_trace(core.eval_trace):
                planned = plan(call, self.room.card, paths_of(call.closed), self._num_devices)
            self.notes.planned(planned)
            called = _Called(planned, Phase.INIT, self.ledger.step)
            called.arguments = arguments_of(planned)
            self._called[key] = called
            self._steps.clear()
        return self._called[key]

    def _enter(self, program: _Called, phase: Phase, *, is_step: bool) -> None:
        """Set phase and step for what the call takes."""
        if is_step:
            self.ledger.step += 1
        self.ledger.phase = phase
        if not program.count:
            program.phase, program.step = self.ledger.phase, self.ledger.step

    def _end_step(self, program: _Called) -> None:
        step = self.ledger.end_step()
        self._steps[id(program)] += 1
        if self._on_step is not None:
            self._on_step(step)
        if self._max_steps and self.ledger.step >= self._max_steps:
            raise StopSimulation("steps")
        if self._steps[id(program)] >= STEADY_STEPS:
            raise StopSimulation("steady")


def _phase(is_step: bool, entries: Sequence[Entry | None], step: int) -> Phase:
    """That of a call: a function of its own that takes in gradients is the optimizer's step."""
    if is_step:
        return Phase.FORWARD
    if any(entry is not None and entry.birth.role is Role.GRADIENT for entry in entries):
        return Phase.OPTIMIZER
    return Phase.EVALUATION if step else Phase.INIT


def _over_cards(sharding: Any) -> str:
    """How an argument lies on several cards; on one it matters to no plan which that is."""
    return str(sharding) if isinstance(sharding, jax.sharding.NamedSharding) else ""


def _record(called: _Called) -> ProgramCall:
    program = called.planned.program
    return ProgramCall(
        name=called.planned.call.name,
        phase=called.phase,
        first_step=called.step,
        num_calls=called.count,
        peak_bytes=called.peak_bytes,
        argument_bytes=sum(size for size, _ in called.arguments),
        output_bytes=program.output_bytes - program.aliased_bytes,
        temporary_bytes=program.temporary_bytes,
        flops=flops_of(graph_of(called.planned.call.closed)) if called.planned.trains else 0,
    )
