"""One device of a snapshot as a capture: what each allocation was for, where the recording decides it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peaksight.postmortem.snapshots.lives import ALIVE, Lives, OutOfMemoryEvent
from peaksight.postmortem.snapshots.places import Names, Place, place_of
from peaksight.postmortem.snapshots.tables import NO_STACK, Annotation, Stacks, Trace
from peaksight.postmortem.snapshots.training import Training, training_of
from peaksight.records import Allocation, Capture, Failure, Phase, Role, StepPeak, Versions
from peaksight.units import MIB

# `getChosenWorkspaceSize` and `getCUDABlasLtWorkspaceSize` of ATen/cuda/CublasHandlePool.cpp: up to Ampere, Hopper, Lt.
_WORKSPACES = frozenset({(2 * 4096 + 8 * 16) << 10, 32 * MIB, MIB})
_NOWHERE = Place()
# What DDP's reducer and FSDP's collectives allocate for themselves: the C++ below these has no frame of its own.
_COMMUNICATION = ("torch/nn/parallel/distributed.py:", "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:")


@dataclass(frozen=True, slots=True)
class Known:
    """What the stacks of a snapshot tell, by their numbers; `script` is the name of the file that they begin in."""

    places: list[Place]
    sources: list[str]
    script: str

    def place(self, stack: int) -> Place:
        """Of `stack`, which may be NO_STACK."""
        return _NOWHERE if stack == NO_STACK else self.places[stack]

    def source(self, stack: int) -> str:
        """The person's line of `stack`, or empty."""
        return "" if stack == NO_STACK else self.sources[stack]


def known_of(stacks: Stacks) -> Known:
    """What all `stacks` tell."""
    places = [place_of(stacks.of(number)) for number in range(len(stacks.stacks))]
    names = Names(places)
    return Known(places, [names.line(place.source) for place in places], names.script)


def capture_of(lives: Lives, known: Known, trace: Trace, annotations: Sequence[Annotation], source: str) -> Capture:
    """The recording of one device, read from the file `source`."""
    training = training_of(lives, known.places, trace, annotations)
    teller = _Teller(lives, known, training)
    failures = tuple(map(teller.failure, lives.failures))
    return Capture(
        argv=(source,),
        gpu="",
        versions=Versions(installed="", device_rules=""),
        allocations=tuple(teller.allocations()),
        steps=tuple(_steps(lives, training, len(trace))),
        peak_tick=lives.peak_tick,
        peak_allocated_bytes=max(lives.allocated_after),
        peak_reserved_bytes=max(lives.reserved_after),
        peak_requested_bytes=lives.peak_requested_bytes,
        peak_active_bytes=lives.peak_active_bytes,
        not_simulated=(),
        writes=(),
        finished="recorded",
        script_exit=0,
        seconds=0.0,
        failures=failures,
        fatal=_fatal(failures, lives),
    )


class _Teller:
    """Tells the rows of one device."""

    def __init__(self, lives: Lives, known: Known, training: Training) -> None:
        self._lives = lives
        self._known = known
        self._training = training
        self._is_whole = lives.num_before == 0
        self._parameter_sizes = frozenset(self._sizes_of_parameters())

    def allocations(self) -> Iterator[Allocation]:
        """In order of birth."""
        lives = self._lives
        columns = (lives.born, lives.died, lives.requested, lives.allocated, lives.stream, lives.stack)
        return map(self._allocation, *columns)

    def failure(self, event: OutOfMemoryEvent) -> Failure:
        """The record of an out-of-memory event; its message is not in a snapshot."""
        place = self._known.place(event.stack)
        phase = self._phase(event.tick, event.stack, place)
        return Failure(
            tick=event.tick,
            message="",
            requested_bytes=event.requested_bytes,
            allocated_bytes=event.allocated_bytes,
            reserved_bytes=event.reserved_bytes,
            step=self._training.step_at(event.tick),
            phase=phase,
            op="",
            module="",
            source=self._known.source(event.stack),
            library=place.library,
            backward_source="",
            free_bytes=event.free_bytes,
        )

    def _allocation(self, born: int, died: int, requested: int, allocated: int, stream: int, stack: int) -> Allocation:
        place = self._known.place(stack)
        phase = self._phase(born, stack, place)
        return Allocation(
            born=born,
            died=None if died == ALIVE else died,
            requested_bytes=requested,
            allocated_bytes=allocated,
            stream=stream,
            step=self._training.step_at(born) if born else 0,
            phase=phase,
            role=self._role(born, died, requested, phase, place),
            grad_enabled=place.runs_module if phase is Phase.BACKWARD else not place.without_grad,
            op="",
            module="",
            source=self._known.source(stack),
            library=place.library,
        )

    def _phase(self, tick: int, stack: int, place: Place) -> Phase:
        """Without a stack only an annotation tells: the optimizer that was running."""
        if tick and self._training.optimizer_step_at(tick) is not None:
            return Phase.OPTIMIZER
        if stack == NO_STACK or (tick == 0 and place.phase is not Phase.OPTIMIZER):
            return Phase.OTHER
        if place.phase is not None:
            return place.phase
        before_forward = tick < self._training.first_forward or not self._training.first_forward
        return Phase.INIT if self._is_whole and before_forward else Phase.FORWARD

    def _role(self, born: int, died: int, requested: int, phase: Phase, place: Place) -> Role:
        """UNKNOWN where nothing decides; UNMARKED where the lifetime will."""
        if place.makes_parameters and phase in (Phase.INIT, Phase.FORWARD, Phase.OTHER) and self._is_kept(born, died):
            return Role.PARAMETER
        if place.library.startswith(_COMMUNICATION):
            return Role.COMMUNICATION
        if phase in (Phase.FORWARD, Phase.BACKWARD) and self._is_workspace(born, died, requested):
            return Role.WORKSPACE
        if phase is Phase.OPTIMIZER:
            return self._of_optimizer(born, died)
        if phase is Phase.BACKWARD and not place.runs_module:
            return self._of_backward(born, died)
        if born == 0:
            return Role.UNKNOWN
        forward = self._training.next_forward(born)
        if forward is not None and not place.runs_module and (died == ALIVE or died > forward):
            return Role.INPUT
        return Role.UNMARKED

    def _is_workspace(self, born: int, died: int, requested: int) -> bool:
        """Whether it has the size of one, stays for good, and is no gradient: no parameter has that size."""
        is_kept = died == ALIVE and self._training.next_optimizer_step(born) is not None
        return requested in _WORKSPACES and is_kept and requested not in self._parameter_sizes

    def _of_optimizer(self, born: int, died: int) -> Role:
        """Its state is what it leaves behind."""
        if born == 0:
            return Role.OPTIMIZER_STATE if died == ALIVE else Role.UNKNOWN
        running = self._training.optimizer_step_at(born)
        is_left = running is not None and (died == ALIVE or died > running[1])
        return Role.OPTIMIZER_STATE if is_left else Role.UNMARKED

    def _of_backward(self, born: int, died: int) -> Role:
        """A gradient waits for the optimizer; where none follows, nobody knows what would have."""
        following = self._training.next_optimizer_step(born)
        if following is None:
            return Role.UNKNOWN if died == ALIVE else Role.UNMARKED
        return Role.GRADIENT if died == ALIVE or died > following[0] else Role.UNMARKED

    def _sizes_of_parameters(self) -> Iterator[int]:
        for born, died, requested, stack in zip(
            self._lives.born, self._lives.died, self._lives.requested, self._lives.stack, strict=True
        ):
            if self._known.place(stack).makes_parameters and self._is_kept(born, died):
                yield requested

    def _is_kept(self, born: int, died: int) -> bool:
        """Whether it outlives the first forward, as parameters do."""
        return died == ALIVE or died > max(born, self._training.first_forward)


def _fatal(failures: tuple[Failure, ...], lives: Lives) -> int | None:
    """The last failure, if nothing was allocated after it."""
    if failures and (not lives.born or failures[-1].tick > lives.born[-1]):
        return len(failures) - 1
    return None


def _steps(lives: Lives, training: Training, num_events: int) -> Iterator[StepPeak]:
    """Each up to the end of its optimizer step, and what follows the last one."""
    first = 1
    ends = [last for _, last in training.optimizer_steps]
    for number, last in enumerate([*ends, num_events], start=1):
        if first <= last:
            began = tuple(tick for tick in training.backward_began if first <= tick <= last)
            allocated, reserved = lives.most_between(first, last)
            yield StepPeak(
                step=number,
                first_tick=first,
                last_tick=last,
                backward_began=began,
                peak_allocated_bytes=allocated,
                peak_reserved_bytes=reserved,
                complete=number <= len(ends),
            )
        first = last + 1
