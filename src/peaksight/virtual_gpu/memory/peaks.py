"""The peaks of a run, and of the step that is going on."""

from dataclasses import dataclass, field

from peaksight.allocator.caching import CachingAllocator
from peaksight.records import StepPeak


@dataclass(slots=True)
class Peaks:
    """The run's own peaks, which `torch.cuda.reset_peak_memory_stats` does not touch."""

    tick: int = 0
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    requested_bytes: int = 0
    active_bytes: int = 0

    def note(self, allocator: CachingAllocator, tick: int) -> None:
        """Something was allocated at `tick`."""
        everything = allocator.everything
        if everything.allocated_bytes.current > self.allocated_bytes:
            self.allocated_bytes, self.tick = everything.allocated_bytes.current, tick
        self.requested_bytes = max(self.requested_bytes, everything.requested_bytes.current)
        self.active_bytes = max(self.active_bytes, everything.active_bytes.current)


@dataclass(slots=True, kw_only=True)
class StepSoFar:
    """The step that is going on, in the making of its record; it began with `first_tick`."""

    first_tick: int
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    num_alloc_retries: int = 0
    backward_began: list[int] = field(default_factory=list)

    def note(self, allocator: CachingAllocator, tick: int, peaks: Peaks) -> None:
        """Something was allocated at `tick`; a peak of the step may be one of the run's `peaks`."""
        peaks.note(allocator, tick)
        everything = allocator.everything
        allocated, reserved = everything.allocated_bytes.current, everything.reserved_bytes.current
        self.allocated_bytes = max(self.allocated_bytes, allocated)
        if reserved > self.reserved_bytes:
            self.reserved_bytes = reserved
            peaks.reserved_bytes = max(peaks.reserved_bytes, reserved)

    def begin_anew(self) -> None:
        """What came so far is not to be in the step's peaks: those are from the next allocation on."""
        self.allocated_bytes = self.reserved_bytes = self.num_alloc_retries = 0

    def record(self, step: int, last_tick: int, *, complete: bool, may_be_trial: bool = False) -> StepPeak:
        """The frozen record of `step`, which ends with `last_tick`."""
        return StepPeak(
            step=step,
            first_tick=self.first_tick,
            last_tick=last_tick,
            backward_began=tuple(self.backward_began),
            peak_allocated_bytes=self.allocated_bytes,
            peak_reserved_bytes=self.reserved_bytes,
            complete=complete,
            num_alloc_retries=self.num_alloc_retries,
            may_be_trial=may_be_trial,
        )
