"""What was predicted or planned, beside what was measured."""

from weakref import ref

from peaksight.live.expectations import Expectations
from peaksight.live.predicted import Predicted
from peaksight.records.plan import Expectation
from peaksight.records.watched import WatchedStep
from peaksight.units import GIB, MIB
from tests.helpers import capture_of, step_of
from tests.helpers_live import Kept, MadeUpCard, figures_of, recorder_of

EXPECTED = Expectation(
    peak_allocated_bytes=(2 * GIB, 3 * GIB),
    peak_reserved_bytes=(3 * GIB, 3 * GIB),
    seconds=0.1,
    trainable=12,
    absent_warnings=("slow",),
)


class Numbers:
    """Parameters of which it is known how many they are."""

    requires_grad = True

    def numel(self):
        return 12


class Optimizer:
    param_groups = ({"params": [Numbers()]},)


def holds_after(*peaks, optimizer=None, seconds=0.1):
    expectations = Expectations(EXPECTED)
    if optimizer is not None:
        expectations.optimizer_stepped(optimizer)
        expectations.optimizer_stepped(optimizer)
    for step, peak in enumerate(peaks, 1):
        facts = {"peak_allocated_bytes": peak, "peak_reserved_bytes": 3 * GIB}
        expectations.after(WatchedStep(step=step, time=0.0, seconds=seconds, device=0, **facts))
    return {check.name: check.holds for check in expectations.at_end()}


def test_a_run_as_planned():
    """The first two steps are another matter: they make what the others keep."""
    optimizer = Optimizer()

    assert holds_after(9 * GIB, 9 * GIB, 2 * GIB, 3 * GIB, optimizer=optimizer) == {
        "peak allocated": True,
        "peak reserved": True,
        "retries": True,
        "time of a step": True,
        "trained parameters": True,
        "warnings": True,
    }
    assert ref(optimizer)() is optimizer


def test_a_run_that_is_not_as_planned():
    """Whatever is outside of what was expected."""
    held = holds_after(0, 0, 4 * GIB, seconds=0.2)

    assert (held["peak allocated"], held["time of a step"], held["trained parameters"]) == (False, False, None)


def test_a_run_that_is_too_short():
    """Tells nothing of steady steps."""
    assert holds_after(2 * GIB)["peak allocated"] is None


def test_a_warning_that_was_to_be_absent():
    """Is noticed, and shown all the same."""
    shown = []
    expectations = Expectations(EXPECTED)
    expectations._listening(lambda *args: shown.append(args))("this is slow", UserWarning, "train.py", 3)
    checks = {check.name: check.holds for check in expectations.at_end()}

    assert checks["warnings"] is False
    assert len(shown) == 1


def test_predicted_beside_measured():
    """Each step has its prediction, the last one for all that follow; what is far off is said once, and the rest at
    the end.
    """
    steps = [
        step_of(number, number, number, peak_allocated_bytes=number * GIB, peak_reserved_bytes=number * GIB)
        for number in (1, 2)
    ]
    predicted, kept = Predicted([capture_of(steps=steps)], rank=3), Kept()
    card = MadeUpCard(*[[figures_of(peak)] for peak in (GIB, 2 * GIB + 20 * MIB, 3 * GIB, 3 * GIB)])
    recorder = recorder_of(card, kept, prediction=predicted, watchers=[predicted])
    for _ in range(4):
        recorder.step()
    recorder.end(0)

    said = [line.text for line in kept.lines if getattr(line, "line", "") == "event"]
    assert [line.predicted_allocated_bytes for line in kept.of(WatchedStep)] == [GIB, 2 * GIB, 2 * GIB, 2 * GIB]
    assert said == [
        "the peak is 3.00 GiB, 50% above the predicted 2.00 GiB",
        "measured peaks are within 50.0% of the predicted ones (median 25.5%, 4 steps)",
    ]


def checks_of_batches(*rows, passes=1, expected=(8, 2)):
    samples, micro_batches = expected
    band = (GIB, GIB)
    expectations = Expectations(
        Expectation(peak_allocated_bytes=band, peak_reserved_bytes=band, samples=samples, micro_batches=micro_batches)
    )
    for step in range(1, 6):
        for each in rows:
            expectations.batch_read(each)
        for _ in range(passes):
            expectations.backward_begins()
        for device in (0, 1):
            expectations.after(WatchedStep(step=step, time=0.0, seconds=0.1, device=device))
    found = {check.name: (check.measured, check.holds) for check in expectations.at_end()}
    return found["samples a step"], found["passes a step"]


def test_samples_and_passes():
    """As planned; other samples in other passes; and one pass for two calls of a model, which is no matter."""
    assert checks_of_batches(4, 4, passes=2) == (("8", True), ("2", True))
    assert checks_of_batches(4, passes=1) == (("4", False), ("1", False))
    assert checks_of_batches(4, 4, passes=1) == (("8", True), ("1", None))
    assert checks_of_batches(passes=2) == (("", None), ("2", True))
