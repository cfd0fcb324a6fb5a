"""Steps and phases of a recording: from annotations where torch made them, else from the stacks of optimizers."""

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from peaksight.postmortem.snapshots.lives import Lives
from peaksight.postmortem.snapshots.places import Place
from peaksight.postmortem.snapshots.tables import Annotation, Trace
from peaksight.records import Phase

# What `torch.optim.Optimizer.profile_hook_step` calls a step.
_OPTIMIZER_STEP = "Optimizer.step#"

Region = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Training:
    """When the optimizers stepped, by first and last tick; when backward passes and each first forward began."""

    optimizer_steps: tuple[Region, ...]
    backward_began: tuple[int, ...]
    forward_began: tuple[int, ...]

    @property
    def first_forward(self) -> int:
        """The tick of the first allocation in a forward, 0 if there is none."""
        return self.forward_began[0] if self.forward_began else 0

    def next_forward(self, tick: int) -> int | None:
        """When the forward began before which `tick` lies in its step; None once it has begun."""
        index = bisect_right(self.forward_began, tick)
        began = self.forward_began[index] if index < len(self.forward_began) else None
        return began if began is not None and self.step_at(began) == self.step_at(tick) else None

    def step_at(self, tick: int) -> int:
        """The step that `tick` belongs to, from 1; 0 where no optimizer shows steps."""
        ends = self.optimizer_steps
        return bisect_left(ends, tick, key=_last) + 1 if ends else 0

    def next_optimizer_step(self, tick: int) -> Region | None:
        """The first that begins after `tick`."""
        index = bisect_right(self.optimizer_steps, tick, key=_first)
        return self.optimizer_steps[index] if index < len(self.optimizer_steps) else None

    def optimizer_step_at(self, tick: int) -> Region | None:
        """The one that is running at `tick`."""
        index = bisect_left(self.optimizer_steps, tick, key=_last)
        found = self.optimizer_steps[index] if index < len(self.optimizer_steps) else None
        return found if found is not None and found[0] <= tick else None


def training_of(lives: Lives, places: Sequence[Place], trace: Trace, annotations: Iterable[Annotation]) -> Training:
    """What the recording shows; `places` are those of the stacks."""
    told = [(tick, places[stack]) for tick, stack in zip(lives.born, lives.stack, strict=True) if tick and stack >= 0]
    backward = [tick for tick, place in told if place.phase is Phase.BACKWARD]
    regions = list(_annotated(trace.times_us, annotations)) or list(_from_stacks(told, len(trace)))
    steps = tuple(_joined(regions, backward))
    forward = [tick for tick, place in told if place.runs_module and place.phase is None]
    return Training(
        optimizer_steps=steps,
        backward_began=tuple(_beginnings(told)),
        forward_began=tuple(_first_in_each(forward, [0, *(last for _, last in steps)])),
    )


def _annotated(times_us: Sequence[int], annotations: Iterable[Annotation]) -> Iterator[Region]:
    """The ticks between a START and its END; those from before the recording are not in it."""
    if not times_us or not times_us[-1]:
        return
    started = None
    for annotation in annotations:
        if not annotation.name.startswith(_OPTIMIZER_STEP):
            continue
        if annotation.stage == "START":
            started = bisect_left(times_us, annotation.time_us) + 1
        elif started is not None:
            ended = bisect_right(times_us, annotation.time_us)
            if ended:
                yield min(started, ended), ended
            started = None


def _from_stacks(told: Iterable[tuple[int, Place]], end: int) -> Iterator[Region]:
    """From the first allocation of an optimizer to the next one of something else, or the `end`."""
    first = 0
    for tick, place in told:
        if place.phase is Phase.OPTIMIZER:
            first = first or tick
        elif first:
            yield first, tick - 1
            first = 0
    if first:
        yield first, end


def _joined(regions: Iterable[Region], backward: Sequence[int]) -> Iterator[Region]:
    """Optimizers that step one after the other, without a backward pass between them, end one step."""
    joined: Region | None = None
    for first, last in regions:
        if joined is not None and bisect_left(backward, joined[1]) < bisect_left(backward, first):
            yield joined
            joined = None
        joined = (joined[0] if joined else first, last)
    if joined is not None:
        yield joined


def _beginnings(told: Iterable[tuple[int, Place]]) -> Iterator[int]:
    """The first tick of each run of allocations in backward passes."""
    before: Phase | None = None
    for tick, place in told:
        if place.phase is Phase.BACKWARD and before is not Phase.BACKWARD:
            yield tick
        before = place.phase


def _first_in_each(ticks: Sequence[int], bounds: Sequence[int]) -> Iterator[int]:
    """The first of `ticks` behind each bound and before the next."""
    for bound, end in pairwise([*bounds, sys.maxsize]):
        index = bisect_right(ticks, bound)
        if index < len(ticks) and ticks[index] <= end:
            yield ticks[index]


def _first(region: Region) -> int:
    return region[0]


def _last(region: Region) -> int:
    return region[1]
