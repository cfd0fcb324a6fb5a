"""The end of a simulated run from the inside, and the rule that says when."""

from peaksight.units import MIB

MIN_STEPS = 3
MAX_STEPS = 20
STEADY_WITHIN_BYTES = MIB
# Of steps that may belong to a search for a batch size, which tries each size for a few.
MIN_ALIKE_TRIALS = 10
MAX_TRIALS = 100
# A loop that has no more rounds left than that is not left before its end where something follows it.
MAX_ROUNDS_LEFT = 10
# Of steps that leave something behind: enough to see what, and how much.
MIN_GROWING = 6
# Of the peak, what a step must leave behind to count: ten thousand steps would add a tenth of it.
GROWTH_SHARE = 1e-5
# Forward passes after the last step of a training that has become steady.
MAX_CALLS_AFTER = 100


class StopRule:
    """Stops after `max_steps`, or without it at the steady state.

    That is when two steps in a row peak alike (within `STEADY_WITHIN_BYTES`), the third at the earliest, of steps that
    leave something behind the sixth (`MIN_GROWING`). Where steps may be those of a search for a batch size,
    `MIN_ALIKE_TRIALS` in a row have to: a search goes on to another size before. `MAX_STEPS`, of possible trials
    `MAX_TRIALS`, that never agree are enough, too, and so is one possible trial
    that peaks at `max_trial_bytes`. `num_trials` counts those in a row.
    """

    def __init__(self, max_steps: int | None, *, max_trial_bytes: int | None = None) -> None:
        """No step has ended."""
        self._max_steps = max_steps
        self._max_trial_bytes = max_trial_bytes
        self._num_steps = 0
        self._peaks: list[int] = []
        self._left: list[int] = []
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

    def reason_to_stop(self, peak_bytes: int, *, left_bytes: int = 0, may_be_trial: bool) -> str | None:
        """A step ended that peaked at `peak_bytes`: why the run stops now, None if it goes on.

        `left_bytes` are still there of what the step before it made.
        """
        self._num_steps += 1
        if may_be_trial is not self._may_be_trial:
            self._peaks.clear()
            self._left.clear()
        self._may_be_trial = may_be_trial
        self._peaks.append(peak_bytes)
        self._left.append(left_bytes)
        if self._max_steps is not None:
            return "steps" if self._num_steps >= self._max_steps else None
        if self._is_steady():
            return "unsteady" if self.growth_bytes else "steady"
        return "unsteady" if self._is_enough() else None

    def _is_enough(self) -> bool:
        if not self._may_be_trial:
            return len(self._peaks) >= MAX_STEPS
        is_huge = self._max_trial_bytes is not None and self._peaks[-1] >= self._max_trial_bytes
        return is_huge or len(self._peaks) >= MAX_TRIALS

    def _is_steady(self) -> bool:
        num_alike = MIN_ALIKE_TRIALS if self._may_be_trial else 2
        last = self._peaks[-num_alike:]
        enough = len(self._peaks) >= max(MIN_GROWING if self.growth_bytes else MIN_STEPS, num_alike)
        return enough and max(last) - min(last) <= STEADY_WITHIN_BYTES
