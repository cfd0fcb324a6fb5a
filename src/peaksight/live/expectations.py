"""What a plan expects of the run under it, checked against what was measured."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Any
from weakref import WeakSet

from peaksight.live.watcher import Saying, Watcher
from peaksight.records.plan import Expectation
from peaksight.records.watched import ExpectationCheck, WatchedStep
from peaksight.units import MIB, format_bytes

# The first steps allocate what the others keep.
_FIRST_STEADY = 3
# A band of predicted peaks is met within the error that predictions have, and a time within theirs (docs/times.md).
_PEAK_TOLERANCE = 0.02
_LEAST_TOLERANCE_BYTES = 2 * MIB
_TIME_TOLERANCE = 0.25


class Expectations(Watcher):
    """Compares a run with `expected`, and says each thing once it has ended."""

    def __init__(self, expected: Expectation) -> None:
        """Nothing has been measured."""
        self._expected = expected
        self._steps: dict[int, list[WatchedStep]] = {}
        self._optimizers: WeakSet[Any] = WeakSet()
        self._trainable = 0
        self._seen_warnings: set[str] = set()
        self._passes, self._samples = _PerStep(), _PerStep()

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Count what it trains, once."""
        if optimizer not in self._optimizers:
            self._optimizers.add(optimizer)
            groups = optimizer.param_groups
            self._trainable += sum(p.numel() for group in groups for p in group["params"] if p.requires_grad)

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """Keep the step."""
        self._passes.end(step.step)
        self._samples.end(step.step)
        if step.device is not None:
            self._steps.setdefault(step.device, []).append(step)
        return ()

    def backward_begins(self) -> None:
        """One more pass in the step that goes on."""
        self._passes.count += 1

    def batch_read(self, rows: int) -> None:
        """A loader gave so many samples for the step that goes on."""
        self._samples.count += rows

    def listen_to_warnings(self) -> None:
        """Note the warnings that are expected to be absent, for good."""
        if self._expected.absent_warnings:
            warnings.showwarning = self._listening(warnings.showwarning)

    def _listening(self, show: Callable[..., None]) -> Callable[..., None]:
        def showwarning(message: Any, *args: Any, **kwargs: Any) -> None:
            self._seen_warnings |= {text for text in self._expected.absent_warnings if text in str(message)}
            show(message, *args, **kwargs)

        return showwarning

    def at_end(self) -> Iterator[ExpectationCheck]:
        """One for each thing that the plan expects."""
        expected = self._expected
        # Of several cards the fullest is the one that has to fit.
        steps = max(self._steps.values(), key=lambda steps: max(s.peak_allocated_bytes for s in steps), default=[])
        steady = [step for step in steps if step.step >= _FIRST_STEADY]
        yield _band("peak allocated", expected.peak_allocated_bytes, [s.peak_allocated_bytes for s in steady])
        yield _band("peak reserved", expected.peak_reserved_bytes, [s.peak_reserved_bytes for s in steady])
        retries = sum(step.retries for step in steady)
        yield ExpectationCheck(
            name="retries",
            expected=f"at most {expected.retries}",
            measured=str(retries) if steady else "",
            holds=retries <= expected.retries if steady else None,
        )
        if expected.seconds is not None:
            yield _time(expected.seconds, [step.seconds for step in steady])
        if expected.trainable:
            yield ExpectationCheck(
                name="trained parameters",
                expected=f"{expected.trainable:,}",
                measured=f"{self._trainable:,}",
                holds=self._trainable == expected.trainable if self._trainable else None,
            )
        yield from self._of_batches()
        for text in expected.absent_warnings:
            seen = text in self._seen_warnings
            yield ExpectationCheck(
                name="warnings", expected=f"no {text!r}", measured="there was one" if seen else "none", holds=not seen
            )

    def _of_batches(self) -> Iterator[ExpectationCheck]:
        """Samples a step; and passes, of which a script may make fewer than it calls models."""
        samples, passes = self._samples.usual, self._passes.usual
        is_as_many = samples == self._expected.samples if samples else None
        if self._expected.samples:
            yield _counted("samples a step", self._expected.samples, samples, is_as_many)
        if self._expected.micro_batches:
            is_alike = passes == self._expected.micro_batches
            holds = True if is_alike else None if is_as_many is not False or not passes else False
            yield _counted("passes a step", self._expected.micro_batches, passes, holds)


class _PerStep:
    """Counts what happens in each step."""

    def __init__(self) -> None:
        self.count = 0
        self._counts: list[int] = []
        self._step = 0

    def end(self, step: int) -> None:
        """The step is over; of several cards each says so."""
        if step > self._step:
            self._step = step
            if step >= _FIRST_STEADY:
                self._counts.append(self.count)
            self.count = 0

    @property
    def usual(self) -> int:
        """In the middle one of the steady steps, 0 without any."""
        return round(median(self._counts)) if self._counts else 0


def _counted(name: str, expected: int, measured: int, holds: bool | None) -> ExpectationCheck:
    return ExpectationCheck(name=name, expected=str(expected), measured=str(measured) if measured else "", holds=holds)


def _band(name: str, band: tuple[int, int], peaks: list[int]) -> ExpectationCheck:
    low, high = band
    tolerance = max(_LEAST_TOLERANCE_BYTES, round(high * _PEAK_TOLERANCE))
    return ExpectationCheck(
        name=name,
        expected=format_bytes(high) if low == high else f"{format_bytes(low)} to {format_bytes(high)}",
        measured=_range(peaks),
        holds=low - tolerance <= min(peaks) and max(peaks) <= high + tolerance if peaks else None,
    )


def _range(peaks: list[int]) -> str:
    if not peaks:
        return "no steady step"
    texts = dict.fromkeys((format_bytes(min(peaks)), format_bytes(max(peaks))))
    return " to ".join(texts)


def _time(expected: float, seconds: list[float]) -> ExpectationCheck:
    measured = median(seconds) if seconds else 0.0
    return ExpectationCheck(
        name="time of a step",
        expected=f"{expected * 1000:.0f} ms",
        measured=f"{measured * 1000:.0f} ms" if seconds else "no steady step",
        holds=abs(measured / expected - 1) <= _TIME_TOLERANCE if seconds else None,
    )
