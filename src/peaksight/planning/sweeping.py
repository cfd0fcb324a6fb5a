"""One flag at several values, each simulated; and the largest that fits, sought beyond the first that does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from peaksight.planning.judgement import is_within
from peaksight.planning.search import Simulate
from peaksight.planning.variants import with_flag
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, Outcome, Tried
from peaksight.units import format_bytes

# A peak may fall where another kernel is chosen: so many values in a row have to be too large.
MISSES = 2


@dataclass(kw_only=True)
class Sweep:
    """Tries `flag` at values, in place of that in the script's `arguments`; `width` at a time, `budget` at most."""

    flag: str
    arguments: tuple[str, ...]
    limit_bytes: int
    simulate: Simulate
    width: int = 2
    budget: int = 40
    tried: dict[str, Tried] = field(default_factory=dict)

    def run(self, values: Sequence[str]) -> list[Tried]:
        """`values`, those that were not tried yet."""
        new = [value for value in values if value not in self.tried]
        candidates = [self._candidate(value) for value in new]
        self.budget -= len(new)
        for value, candidate, outcome in zip(new, candidates, self.simulate(candidates), strict=True):
            self.tried[value] = judged_alone(candidate, outcome, self.limit_bytes)
        return [self.tried[value] for value in values]

    def largest(self) -> int | None:
        """The largest whole number that fits: by doubling from 1, and then between the last that fits and the next.

        Between numbers that were tried, others were not.
        """
        self._double()
        fitting = self._fitting()
        while fitting and self.budget > 0 and (between := list(self._between(max(fitting)))):
            self.run([str(value) for value in between])
            fitting = self._fitting()
        return max(fitting, default=None)

    def _double(self) -> None:
        value, misses, samples = 1, 0, 0
        while misses < MISSES and self.budget > 0:
            for tried in self.run([str(value * 2**step) for step in range(self.width)]):
                grows = tried.outcome.samples > samples
                samples = max(samples, tried.outcome.samples)
                misses = 0 if tried.fits and grows else misses + 1
            value *= 2**self.width

    def _fitting(self) -> list[int]:
        """The values that fit and that have a step see more samples than any smaller one."""
        found, samples = [], 0
        for value, tried in sorted((int(value), tried) for value, tried in self.tried.items()):
            if tried.fits and tried.outcome.samples > samples:
                found.append(value)
                samples = tried.outcome.samples
        return found

    def _between(self, low: int) -> Iterator[int]:
        """Evenly, between `low` and the next larger value that was tried, unless that fits, with no more samples."""
        high = min((int(value) for value in self.tried if int(value) > low), default=low)
        if self.tried[str(high)].fits:
            return
        gap = high - low
        count = min(self.width, gap - 1)
        yield from sorted({low + gap * (index + 1) // (count + 1) for index in range(count)} - {low, high})

    def _candidate(self, value: str) -> Candidate:
        return Candidate(
            kinds=("sweep",),
            title=f"{self.flag} {value}" if self.flag.startswith("-") else f"{self.flag}={value}",
            slots=("sweep",),
            effect=Effect.MODEL,
            arguments=with_flag(self.arguments, self.flag, value),
        )


def judged_alone(candidate: Candidate, outcome: Outcome, limit_bytes: int) -> Tried:
    """`candidate` with whether it fits, by nothing else than its peak."""
    if outcome.error or is_within(outcome, limit_bytes):
        return Tried(candidate=candidate, outcome=outcome, fits=not outcome.error, verdict=outcome.error)
    beyond = outcome.reserved_bytes - limit_bytes
    return Tried(candidate=candidate, outcome=outcome, fits=False, verdict=f"{format_bytes(beyond)} too much")
