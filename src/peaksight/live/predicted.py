"""What a simulation predicted for each step, beside what is measured."""

from collections.abc import Iterable, Sequence
from statistics import median

from peaksight.live.watcher import Saying, Watcher
from peaksight.records import Capture
from peaksight.records.watched import WatchedStep
from peaksight.units import format_bytes

# A prediction that is off by more is worth a word.
_FAR_OFF = 0.05


class Predicted(Watcher):
    """The peaks of a capture of `peaksight run --save`, for the process with the number `rank`."""

    def __init__(self, captures: Sequence[Capture], rank: int) -> None:
        """Of a rank that was not simulated those of rank 0 are taken."""
        of_rank = [capture for capture in captures if capture.rank == rank]
        # The last one of a device is the one without a limit.
        self._devices = {capture.device: capture for capture in of_rank or captures if capture.steps}
        self._errors: list[float] = []
        self._has_spoken = False

    def of(self, step: int, device: int) -> tuple[int, int] | None:
        """The predicted peaks of `step`; after those that were simulated, the last one's."""
        capture = self._devices.get(device) or next(iter(self._devices.values()), None)
        if capture is None:
            return None
        complete = [each for each in capture.steps if each.complete] or list(capture.steps)
        peak = complete[min(step, len(complete)) - 1]
        return peak.peak_allocated_bytes, peak.peak_reserved_bytes

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """The first step whose peak is not what was predicted."""
        if not step.predicted_allocated_bytes:
            return
        error = step.peak_allocated_bytes / step.predicted_allocated_bytes - 1
        self._errors.append(error)
        if abs(error) > _FAR_OFF and not self._has_spoken:
            self._has_spoken = True
            yield (
                "not-as-predicted",
                f"the peak is {format_bytes(step.peak_allocated_bytes)}, {abs(error):.0%} "
                f"{'above' if error > 0 else 'below'} the predicted {format_bytes(step.predicted_allocated_bytes)}",
            )

    def at_end(self) -> Iterable[Saying]:
        """How far off the predictions were."""
        if self._errors:
            off = [abs(error) for error in self._errors]
            yield (
                "predicted",
                f"measured peaks are within {max(off):.1%} of the predicted ones (median {median(off):.1%}, "
                f"{len(off)} steps)",
            )
