"""What was allocated after each tick of a run."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from peaksight.records import Capture, StepPeak


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a run: the tick at which it is fullest, what is allocated then, and the least in it."""

    tick: int
    most_bytes: int
    least_bytes: int


class Levels:
    """The allocated bytes after each tick at which something was born or died."""

    def __init__(self, capture: Capture) -> None:
        """Sort the births and deaths of `capture`."""
        births = [(a.born, a.allocated_bytes) for a in capture.allocations]
        deaths = [(a.died, -a.allocated_bytes) for a in capture.allocations if a.died is not None]
        changes = sorted(births + deaths)
        totals = accumulate(size for _, size in changes)
        after = dict(zip((tick for tick, _ in changes), totals, strict=True))
        self.ticks, self.bytes = list(after), list(after.values())

    def peak_tick(self, step: StepPeak) -> int | None:
        """The first tick at which `step` is at its peak, or the last one before it where it only falls.

        None where nothing ever was allocated by then.
        """
        first, end = bisect_left(self.ticks, step.first_tick), bisect_left(self.ticks, step.last_tick + 1)
        try:
            return self.ticks[self.bytes.index(step.peak_allocated_bytes, first, end)]
        except ValueError:
            return self.ticks[first - 1] if first else None

    def parts(self, firsts: Sequence[int]) -> list[Part]:
        """The parts of the run that begin at the ticks `firsts`; nothing changes before the first of them."""
        starts = [bisect_left(self.ticks, tick) for tick in firsts]
        return [self._part(first, end) for first, end in pairwise([*starts, len(self.ticks)])]

    def moment(self, tick: int) -> Part:
        """A part that is nothing but `tick`."""
        allocated_bytes = self.bytes[bisect_right(self.ticks, tick) - 1]
        return Part(tick=tick, most_bytes=allocated_bytes, least_bytes=allocated_bytes)

    def _part(self, first: int, end: int) -> Part:
        inside = self.bytes[first:end]
        most = max(inside)
        return Part(tick=self.ticks[first + inside.index(most)], most_bytes=most, least_bytes=min(inside))
