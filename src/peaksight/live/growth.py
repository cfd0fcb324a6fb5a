"""Memory that grows with every step: when the card will be full, and which line holds on to it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Protocol

from peaksight.live.watcher import Saying, Watcher
from peaksight.records.watched import WatchedStep
from peaksight.units import format_bytes

_NUM_SAMPLES = 16
# A sample is the least that is held at the end of so many steps: what lives for a few of them is no growth.
_STEPS_A_SAMPLE = (1, 16)
# In so many of the samples it has grown.
_OFTEN = 0.75
# What would fill the card later than this is not worth a warning.
_FAR_AWAY = 100_000
# Between the two looks at who holds what.
_STEPS_BETWEEN_LOOKS = 4
# It is said again when the end is this near.
_NEAR = 20


class Holders(Protocol):
    """Says which lines hold how much of a card."""

    def begin(self) -> bool:
        """From now on lines are known; False where they cannot be."""
        ...

    def bytes_by_line(self, device: int) -> dict[str, int]:
        """What was allocated since `begin` and is alive, by `file.py:line`; what has no line has an empty one."""
        ...


class Growth(Watcher):
    """Watches what is left at the end of each step."""

    def __init__(self, holders: Holders | None = None) -> None:
        """Without `holders` no line is named."""
        self._holders = holders
        self._cards: dict[int, _Card] = {}

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """That memory grows, once; then the line; then that the end is near."""
        if step.device is None:
            return
        card = self._cards.get(step.device)
        if card is None:
            card = self._cards[step.device] = _Card(step.device)
        card.add(step)
        yield from card.sayings(step, self._holders)


class _Card:
    """One card's steps."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._series = [_Series(steps) for steps in _STEPS_A_SAMPLE]
        self._usable_bytes: int | None = None
        self._has_warned = self._is_near = False
        self._looks: _Looks | None = None

    def add(self, step: WatchedStep) -> None:
        """Take a step's figures."""
        if step.free_bytes is not None:
            self._usable_bytes = step.reserved_bytes + step.free_bytes
        for series in self._series:
            series.add(step.allocated_bytes)

    def sayings(self, step: WatchedStep, holders: Holders | None) -> Iterator[Saying]:
        """What follows from all steps so far."""
        if self._looks is not None:
            yield from self._looks.after(step.step)
        growing = next((series for series in self._series if series.rate), None)
        if growing is None or self._usable_bytes is None:
            return
        steps_left = int(max(0, self._usable_bytes - step.peak_allocated_bytes) / growing.rate)
        rate = f"allocated memory grows by {format_bytes(round(growing.rate))} a step"
        if steps_left <= _FAR_AWAY and not self._has_warned:
            self._has_warned = True
            yield "growth", f"{rate}: if it goes on, the card is full at about step {step.step + steps_left}"
            if holders is not None and holders.begin():
                self._looks = _Looks(holders, self._device, step.step, growing.steps_a_sample)
        elif steps_left <= _NEAR and not self._is_near:
            self._is_near = True
            yield "nearly-full", f"{rate}: the card is full in about {steps_left} steps"


class _Looks:
    """Two looks at which lines hold what: what they hold more of at the second one is what grows."""

    def __init__(self, holders: Holders, device: int, step: int, steps_a_sample: int) -> None:
        """Recording began after `step`; what grows does so at least once in `steps_a_sample`."""
        self._holders, self._device = holders, device
        self._first = step + 1
        self._num_steps = _STEPS_BETWEEN_LOOKS * steps_a_sample
        self._before: dict[str, int] = {}

    def after(self, step: int) -> Iterator[Saying]:
        """The line, at the second look."""
        if step == self._first:
            self._before = self._holders.bytes_by_line(self._device)
        elif step == self._first + self._num_steps:
            held = self._holders.bytes_by_line(self._device)
            line = max(held, key=self._growth(held), default="")
            grown = self._growth(held)(line) if held else 0
            if grown > 0:
                rate = format_bytes(grown // self._num_steps)
                yield "growth-line", f"what grows is allocated at {line or 'no line of Python'}: {rate} a step"

    def _growth(self, held: Mapping[str, int]) -> Callable[[str], int]:
        return lambda line: held[line] - self._before.get(line, 0)


class _Series:
    """Samples of what is held at the end of a step, one for so many steps."""

    def __init__(self, steps_a_sample: int) -> None:
        self.steps_a_sample = steps_a_sample
        self._samples: deque[int] = deque(maxlen=_NUM_SAMPLES)
        self._pending: list[int] = []

    def add(self, held_bytes: int) -> None:
        """What is held at the end of one more step."""
        self._pending.append(held_bytes)
        if len(self._pending) == self.steps_a_sample:
            self._samples.append(min(self._pending))
            self._pending.clear()

    @property
    def rate(self) -> float:
        """By how much it grows a step if it grew nearly always and never fell, else 0."""
        samples = self._samples
        if len(samples) < _NUM_SAMPLES or samples[-1] <= samples[0]:
            return 0.0
        changes = [later - earlier for earlier, later in pairwise(samples)]
        if min(changes) < 0 or sum(map(bool, changes)) < _OFTEN * len(changes):
            return 0.0
        return sum(changes) / len(changes) / self.steps_a_sample
