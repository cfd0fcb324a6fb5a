"""What a report says in whole sentences."""

from peaksight.records import (
    WITHOUT_ANSWER,
    Approximation,
    OutOfMemory,
    Peak,
    Phase,
    Report,
    Retries,
    StepPeak,
)
from peaksight.reporting.cards import in_words, on_card
from peaksight.reporting.rows import by_category
from peaksight.units import format_bytes

NOT_REACHED = "Not reached by the run, so not in the peak"

_NUM_CATEGORIES = 3

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
    "untrained": "the script ran to its end",
    "deadlock": "the ranks do not agree",
}


def verdict(report: Report) -> str:
    """The answer in one sentence."""
    if report.oom is not None:
        return _failing(report, report.oom)
    if report.peak.allocated_bytes == 0:
        return "Nothing to predict: the script allocated no GPU memory."
    return f"{_answer(report)} {in_words(report)}: {_need(report)}{_outcome(report)}."


def _failing(report: Report, oom: OutOfMemory) -> str:
    """What the job needs, what the card gives, and where that ends."""
    answer = "Does not fit" if report.fits is False else "Likely does not fit"
    at_least = "" if _is_whole(report) else "at least "
    called = f", called at {oom.backward_at}" if oom.backward_at and oom.backward_at != oom.at else ""
    return (
        f"{answer}: needs {at_least}{format_bytes(report.peak.reserved_bytes)} (predicted){on_card(report)}; "
        f"the {report.gpu.name} gives {format_bytes(report.gpu.usable_bytes)}; "
        f"fails {moment(oom)}{called}, asking for {format_bytes(oom.requested_bytes)}."
    )


def _answer(report: Report) -> str:
    if not _is_whole(report):
        return "No answer for"
    return "Fits" if report.fits else "Likely fits"


def _need(report: Report) -> str:
    peak, so_far = report.peak, "" if _is_whole(report) else " so far"
    return (
        f"predicted peak{so_far} {format_bytes(peak.allocated_bytes)} allocated / "
        f"{format_bytes(peak.reserved_bytes)} reserved{on_card(report)}, {format_bytes(report.gpu.usable_bytes)} usable"
    )


def _outcome(report: Report) -> str:
    if not _is_whole(report):
        return f"; {_FINISHED[report.finished]}"
    caught = f"; the script gets over running out of memory {_times(report.caught_ooms)}" if report.caught_ooms else ""
    return f"{'' if report.fits else _doubt(report)}{caught}{_thrashing(report.retries)}"


def _doubt(report: Report) -> str:
    if not report.undecided:
        return ", too close to be sure"
    return f", unless for what is not simulated: {', '.join(report.undecided)}"


def _thrashing(retries: Retries | None) -> str:
    """A full card, on which the allocator gives its cache back and starts anew: every time it waits for the GPU."""
    if retries is None:
        return ""
    return (
        f"; only by giving cached memory back {_times(retries.count)} in {_numbered(retries.steps)}, which is slow: "
        f"{format_bytes(retries.head_room_bytes)} more would end that"
    )


def _numbered(steps: tuple[int, ...]) -> str:
    """`step 2`, `steps 2 and 3`, `steps 2 to 9` (the first and the last)."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"steps {steps[0]} {'and' if len(steps) == 2 else 'to'} {steps[-1]}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def moment(at: Peak | OutOfMemory) -> str:
    """Where and when, as the rest of a sentence: `at train.py:42 in the backward of step 1`."""
    when = _WHEN[at.phase].format(step=at.step)
    return f"at {at.at} {when}" if at.at else when


def unknown_size(unknown: Approximation) -> str:
    """The size of what was not simulated: `115.00 MiB`, `up to 1.25 GiB` or `unknown`; `no more` is less at most."""
    if unknown.bytes is not None:
        return format_bytes(unknown.bytes)
    if unknown.at_most_bytes == 0:
        return "no more"
    return "unknown" if unknown.at_most_bytes is None else f"up to {format_bytes(unknown.at_most_bytes)}"


def ending(report: Report) -> str:
    """How the run ended: `stopped at the steady state after 3 steps`."""
    how = f"after {_steps(len(report.steps))}" if report.steps else "without an optimizer step"
    return f"{_FINISHED[report.finished]} {how}"


def stopped_line(report: Report, num_steps: int) -> str:
    """How far a run got that gives no answer, in one line; `num_steps` is how many steps it finished."""
    if num_steps == 0:
        return f"{_FINISHED[report.finished]} in step 1{on_card(report)}: no answer"
    return f"{_FINISHED[report.finished]} after {_steps(num_steps)}: no answer; {_need(report)}"


def no_answer(report: Report) -> str:
    """Why there is no answer: `the script failed in step 2`."""
    if report.finished == "failed":
        return f"the script failed in step {len(report.steps) + 1}"
    return ending(report)


def progress_line(step: StepPeak, seconds: float) -> str:
    """One finished step, `seconds` after the start."""
    return (
        f"step {step.step}: predicted {format_bytes(step.peak_allocated_bytes)} allocated, "
        f"{format_bytes(step.peak_reserved_bytes)} reserved, {seconds:.1f} s"
    )


def again_line(card: str) -> str:
    """The run starts again, on a card without a limit."""
    return f"out of memory on the {card}: running again without a limit, to see what the job needs"


def _is_whole(report: Report) -> bool:
    return report.finished not in WITHOUT_ANSWER


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def peak_lines(peak: Peak) -> list[tuple[str, int, str]]:
    """Each number of the peak with its name and what it means."""
    lines = [
        ("allocated", peak.allocated_bytes, moment(peak)),
        ("reserved", peak.reserved_bytes, "what the job needs on the card"),
        ("requested", peak.requested_bytes, "before rounding to blocks"),
        ("process", peak.process_bytes, "with the CUDA context, as nvidia-smi counts"),
    ]
    return [(name, num_bytes, note) for name, num_bytes, note in lines if num_bytes is not None]


def failure_lines(oom: OutOfMemory) -> list[tuple[str, int, str]]:
    """Each number of the failure with its name and what it means."""
    largest = by_category(oom.live)[:_NUM_CATEGORIES]
    free = "" if oom.free_bytes is None else f"{format_bytes(oom.free_bytes)} of the card were free"
    alive = ", ".join(f"{row.category_words} {format_bytes(row.bytes)}" for row in largest)
    return [
        ("asked for", oom.requested_bytes, moment(oom)),
        ("allocated", oom.allocated_bytes, alive),
        ("reserved", oom.reserved_bytes, free),
    ]


def footer(report: Report) -> tuple[str, ...]:
    """Versions, how the run ended, how long it took."""
    versions = f"torch {report.torch}", f"device rules {report.device_rules}"
    if report.torch.startswith("jax "):
        versions = report.torch, f"memory as planned by {report.device_rules}"
    return *versions, ending(report), f"{report.seconds:.1f} s"


def blocks(count: int) -> str:
    """`1 block`, `12 blocks`."""
    return "1 block" if count == 1 else f"{count} blocks"
