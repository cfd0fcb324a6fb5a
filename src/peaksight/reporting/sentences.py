"""What a report says in whole sentences."""

from peaksight.records import OutOfMemory, Peak, Phase, Report, StepPeak
from peaksight.units import format_bytes

_WHEN = {
    Phase.INIT: "before the first forward",
    Phase.FORWARD: "in the forward of step {step}",
    Phase.BACKWARD: "in the backward of step {step}",
    Phase.OPTIMIZER: "in the optimizer step of step {step}",
    Phase.EVALUATION: "in the evaluation of step {step}",
    Phase.SAVE: "while saving in step {step}",
    Phase.OTHER: "in step {step}",
}

_FINISHED = {
    "script": "the script ran to its end",
    "steady": "stopped at the steady state",
    "steps": "stopped as asked",
    "unsteady": "stopped, no two steps peak alike",
    "interrupted": "interrupted",
    "failed": "the script failed",
}


def verdict(report: Report) -> str:
    """The answer in one sentence."""
    if report.peak.allocated_bytes == 0:
        return "Nothing to predict: the script allocated no GPU memory."
    card = f"{_article(report.gpu.name)} {report.gpu.name}"
    return f"{_answer(report)} {card}: {_need(report)}{_outcome(report)}."


def _answer(report: Report) -> str:
    if report.oom is not None:
        return "Does not fit" if report.fits is False else "Likely does not fit"
    if not _is_whole(report):
        return "No answer for"
    return "Fits" if report.fits else "Likely fits"


def _need(report: Report) -> str:
    peak, so_far = report.peak, "" if _is_whole(report) else " so far"
    return (
        f"predicted peak{so_far} {format_bytes(peak.allocated_bytes)} allocated / "
        f"{format_bytes(peak.reserved_bytes)} reserved, {format_bytes(report.gpu.usable_bytes)} usable"
    )


def _outcome(report: Report) -> str:
    if report.oom is not None:
        return f"; it would fail {moment(report.oom)}, asking for {format_bytes(report.oom.requested_bytes)}"
    if not _is_whole(report):
        return f"; {_FINISHED[report.finished]}"
    return "" if report.fits else ", too close to be sure"


def moment(at: Peak | OutOfMemory) -> str:
    """Where and when, as the rest of a sentence: `at train.py:42 in the backward of step 1`."""
    when = _WHEN[at.phase].format(step=at.step)
    return f"at {at.at} {when}" if at.at else when


def ending(report: Report) -> str:
    """How the run ended: `stopped at the steady state after 3 steps`."""
    how = f"after {_steps(len(report.steps))}" if report.steps else "without an optimizer step"
    return f"{_FINISHED[report.finished]} {how}"


def stopped_line(report: Report, num_steps: int) -> str:
    """How far a run got that gives no answer, in one line; `num_steps` is how many steps it finished."""
    if num_steps == 0:
        return f"{_FINISHED[report.finished]} in step 1: no answer"
    return f"{_FINISHED[report.finished]} after {_steps(num_steps)}: no answer; {_need(report)}"


def progress_line(step: StepPeak, seconds: float) -> str:
    """One finished step, `seconds` after the start."""
    return (
        f"step {step.step}: {format_bytes(step.peak_allocated_bytes)} allocated, "
        f"{format_bytes(step.peak_reserved_bytes)} reserved (predicted), {seconds:.1f} s"
    )


def _is_whole(report: Report) -> bool:
    return report.finished not in ("failed", "interrupted")


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _article(name: str) -> str:
    return "an" if name.startswith(("NVIDIA", "A", "E", "I", "O", "U")) else "a"


def peak_lines(peak: Peak) -> list[tuple[str, int, str]]:
    """Each number of the peak with its name and what it means."""
    lines = [
        ("allocated", peak.allocated_bytes, moment(peak)),
        ("reserved", peak.reserved_bytes, "what the job needs on the card"),
        ("requested", peak.requested_bytes, "before rounding to blocks"),
        ("process", peak.process_bytes, "with the CUDA context, as nvidia-smi counts"),
    ]
    return [(name, num_bytes, note) for name, num_bytes, note in lines if num_bytes is not None]


def footer(report: Report) -> tuple[str, ...]:
    """Versions, how the run ended, how long it took."""
    versions = f"torch {report.torch}", f"device rules {report.device_rules}"
    return *versions, ending(report), f"{report.seconds:.1f} s"


def blocks(count: int) -> str:
    """`1 block`, `12 blocks`."""
    return "1 block" if count == 1 else f"{count} blocks"
