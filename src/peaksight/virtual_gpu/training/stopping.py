"""The end of a simulated run from the inside, and the rules that say when."""

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import WeakSet

from peaksight.units import MIB

MIN_STEPS = 3
MAX_STEPS = 20
STEADY_WITHIN_BYTES = MIB
# Of steps that may belong to a search for a batch size, which tries each size for a few.
MIN_ALIKE_TRIALS = 10
MAX_TRIALS = 100
# A loop that has no more rounds left than that is not left before its end where something follows it,
MAX_ROUNDS_LEFT = 10
# and neither are loops whose rounds together take no more blocks of the card than that: some seconds on the host.
MAX_BLOCKS_LEFT = 40_000
# Trainings of one script, each with an optimizer of its own, that may take as much.
MAX_TRAININGS = 4
# Of steps that leave something behind: enough to see what, and how much.
MIN_GROWING = 6
# Of steps in which the allocator gave its cache back: each may leave less room for the next.
MAX_RETRYING = 10
# Of the peak, what a step must leave behind to count: ten thousand steps would add a tenth of it.
GROWTH_SHARE = 1e-5
# Forward passes after the last step of a training that has become steady.
MAX_CALLS_AFTER = 100


class StepEnd(NamedTuple):
    """What tells a step from others: its peak, what is left of what the step before it made, and how memory is cut.

    `layout` is equal where free and taken blocks lie alike; None of a step in which the allocator kept its cache.
    """

    peak_bytes: int
    left_bytes: int = 0
    layout: int | None = None


class StopRule:
    """Stops after `max_steps`, or without it at the steady state.

    That is when two steps in a row peak alike (within `STEADY_WITHIN_BYTES`), the third at the earliest, of steps that
    leave something behind the sixth (`MIN_GROWING`). Steps in which the allocator gave its cache back have to leave the
    same layout, too; the tenth in a row (`MAX_RETRYING`) is enough. Where steps may be those of a search for a batch
    size, `MIN_ALIKE_TRIALS` in a row have to peak alike: a search goes on to another size before. `MAX_STEPS` in a row,
    of possible trials `MAX_TRIALS`, that do not agree are enough, too, and so is one possible trial that peaks at
    `max_trial_bytes`. `num_trials` counts those in a row.
    """

    def __init__(self, max_steps: int | None, *, max_trial_bytes: int | None = None) -> None:
        """No step has ended."""
        self._max_steps = max_steps
        self._max_trial_bytes = max_trial_bytes
        self._num_steps = 0
        self._num_unlike = 0
        self._peaks: list[int] = []
        self._left: list[int] = []
        self._layouts: list[int | None] = []
        self._may_be_trial = False

    @property
    def num_trials(self) -> int:
        """How many possible trials were the last steps."""
        return len(self._peaks) if self._may_be_trial else 0

    @property
    def growth_bytes(self) -> int:
        """What a step leaves behind, the median of the last three that tell; 0 where that is nothing to count."""
        # The first step also makes what stays for all.
        last = sorted(self._left[2:][-3:])
        growth = last[len(last) // 2] if last else 0
        return growth if growth and growth >= GROWTH_SHARE * self._peaks[-1] else 0

    def reason_to_stop(self, step: StepEnd, *, may_be_trial: bool) -> str | None:
        """A `step` ended: why the run stops now, None if it goes on."""
        self._num_steps += 1
        self._num_unlike += 1
        if may_be_trial is not self._may_be_trial:
            self._num_unlike = 1
            for seen in (self._peaks, self._left, self._layouts):
                seen.clear()
        self._may_be_trial = may_be_trial
        self._peaks.append(step.peak_bytes)
        self._left.append(step.left_bytes)
        self._layouts.append(step.layout)
        if self._max_steps is not None:
            return "steps" if self._num_steps >= self._max_steps else None
        if self._is_steady():
            self._num_unlike = 0
            return "unsteady" if self.growth_bytes else "steady"
        return "unsteady" if self._is_enough() else None

    def _is_enough(self) -> bool:
        if not self._may_be_trial:
            return self._num_unlike >= MAX_STEPS
        is_huge = self._max_trial_bytes is not None and self._peaks[-1] >= self._max_trial_bytes
        return is_huge or self._num_unlike >= MAX_TRIALS

    def _is_steady(self) -> bool:
        num_alike = MIN_ALIKE_TRIALS if self._may_be_trial else 2
        last = self._peaks[-num_alike:]
        enough = len(self._peaks) >= max(MIN_GROWING if self.growth_bytes else MIN_STEPS, num_alike)
        return enough and max(last) - min(last) <= STEADY_WITHIN_BYTES and self._is_cut_alike()

    def _is_cut_alike(self) -> bool:
        *_, before, last = self._layouts
        retrying = [layout for layout in self._layouts[-MAX_RETRYING:] if layout is not None]
        return self._may_be_trial or before == last or len(retrying) == MAX_RETRYING


class Allowance:
    """How far a script is followed once its steps show nothing new, to come to what was not reached yet.

    That is to the end of one loop with few rounds left, and through others as long as all of it takes few blocks:
    `count_blocks` says how many the card has handed out. A training with another optimizer has as much again.
    """

    def __init__(self, count_blocks: Callable[[], int]) -> None:
        """No step has ended."""
        self._count_blocks = count_blocks
        self._optimizers: WeakSet[Any] = WeakSet()
        self._num_trainings = 1
        self._num_blocks = 0
        self._blocks_of_step = 0
        self._blocks_when_known: int | None = None
        self._had_its_loop = False

    def stepped(self, optimizer: Any) -> None:
        """One that steps for the first time, once others showed nothing new, begins another training."""
        is_new = optimizer not in self._optimizers
        self._optimizers.add(optimizer)
        if is_new and self._blocks_when_known is not None and self._num_trainings < MAX_TRAININGS:
            self._num_trainings += 1
            self._blocks_when_known, self._had_its_loop = None, False

    def step_ended(self) -> None:
        """Count the blocks of the step."""
        num_blocks = self._count_blocks()
        self._num_blocks, self._blocks_of_step = num_blocks, num_blocks - self._num_blocks

    def covers(self, rounds_left: int) -> bool:
        """Whether the script goes on through the rounds that are left of the loop around the last step."""
        if self._blocks_when_known is None:
            self._blocks_when_known = self._num_blocks
        num_blocks = self._num_blocks - self._blocks_when_known + rounds_left * self._blocks_of_step
        covers = num_blocks <= MAX_BLOCKS_LEFT or (rounds_left <= MAX_ROUNDS_LEFT and not self._had_its_loop)
        self._had_its_loop |= rounds_left == 0
        return covers
