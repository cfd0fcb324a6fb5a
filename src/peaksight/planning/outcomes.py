"""What a simulated run comes to for the planner."""

from collections import Counter
from collections.abc import Collection, Sequence

from peaksight.attribution.phases import peaks_by_phase
from peaksight.attribution.replayed import replay_capture
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.forward_without_backward import calls_without_backward
from peaksight.records import WITHOUT_ANSWER, Capture, Phase, StepPeak
from peaksight.records.proposals import Outcome, PhasePeak


def idle_lines(captures: Sequence[Capture]) -> frozenset[str]:
    """The lines of which every recorded call of a model saves what no backward pass needs."""
    used: set[str] = set()
    unused: set[str] = set()
    for capture in captures:
        idle = set(calls_without_backward(Evidence(capture)))
        for call in capture.passes:
            (unused if call in idle else used).update({call.at} if call.recorded else ())
    return frozenset(unused - used - {""})


def outcome_of(
    captures: Sequence[Capture], limit_bytes: int, idle: Collection[str] = (), pool_bytes: int = 0
) -> Outcome:
    """The outcome of a run whose card had no limit, and what it came to if PyTorch may reserve `limit_bytes`.

    `captures` are of all cards that it used: the fullest counts. Calls of a model at the lines `idle` train nothing.
    Under JAX `pool_bytes` is the pool of the run as it is.
    """
    capture = max(captures, key=lambda each: each.peak_reserved_bytes)
    if capture.finished in WITHOUT_ANSWER:
        return Outcome(error=_why(capture))
    peak = next((a for a in capture.allocations if a.born == capture.peak_tick), None)
    passes = _passes(capture, idle)
    return Outcome(
        allocated_bytes=capture.peak_allocated_bytes,
        reserved_bytes=capture.peak_reserved_bytes,
        phases=tuple(PhasePeak(phase=p, allocated_bytes=size) for p, size in peaks_by_phase(capture).items()),
        at=peak.source if peak else "",
        phase=peak.phase if peak else Phase.OTHER,
        step=peak.step if peak else 0,
        seconds=min((work.seconds for work in capture.work[1:] or capture.work), default=None),
        samples=sum(passes),
        passes=len(passes),
        steps_per_epoch=_steps_per_epoch(capture),
        steady_bytes=_steady(capture),
        parameters=_parameters(capture),
        retries_at_limit=_retries(capture, limit_bytes),
        without_effect=capture.without_effect,
        operations=max((each.flops for each in capture.program_calls), default=0),
        extra_bytes=0 if capture.pool_bytes is None else max(0, capture.pool_bytes - pool_bytes),
        tier=capture.versions.device_rules if capture.pool_bytes is not None else "",
    )


def _retries(capture: Capture, limit_bytes: int) -> int | None:
    """How often cached memory had to be given back below the limit, None where that is not enough."""
    if capture.peak_reserved_bytes <= limit_bytes:
        return 0
    if capture.pool_bytes is not None:
        return None
    if capture.peak_allocated_bytes > limit_bytes:
        return None
    replayed = replay_capture(capture, limit_bytes=None, allowed_bytes=limit_bytes)
    return replayed.num_alloc_retries if replayed.failure is None else None


def _why(capture: Capture) -> str:
    if capture.finished == "failed":
        return f"the script fails with it (exit code {capture.script_exit})"
    return "no optimizer steps with it" if capture.finished == "untrained" else "it was interrupted"


def _passes(capture: Capture, idle: Collection[str]) -> list[int]:
    """The rows of each recorded call of a model in the last complete step, but for those that train nothing."""
    complete = [step.step for step in capture.steps if step.complete]
    last = complete[-1] if complete else 0
    calls = (call for call in capture.passes if call.step == last and call.recorded and call.training)
    return [call.rows for call in calls if call.at not in idle]


def _steady(capture: Capture) -> tuple[int, int, int, int]:
    complete = [step for step in capture.steps if step.complete]
    steps: list[StepPeak] = complete[1:] or complete
    allocated = [step.peak_allocated_bytes for step in steps] or [capture.peak_allocated_bytes]
    reserved = [step.peak_reserved_bytes for step in steps] or [capture.peak_reserved_bytes]
    return min(allocated), max(allocated), min(reserved), max(reserved)


def _parameters(capture: Capture) -> tuple[int, int]:
    """How many numbers the parameters of the model are, and those that an optimizer trains."""
    trained = sum(row.num_elements for row in capture.optimizers if not row.frozen)
    return sum(module.num_elements for module in capture.modules), trained


def _steps_per_epoch(capture: Capture) -> int:
    """Full optimizer steps in one reading of the loader that every step reads; 0 where none, or no one, knows."""
    read = Counter((batch.loader, batch.step) for batch in capture.batches)
    steps = {step.step for step in capture.steps if step.complete}
    for loader in dict.fromkeys(batch.loader for batch in capture.batches):
        counts = {read[loader, step] for step in steps} - {0}
        length = next(batch.num_batches for batch in capture.batches if batch.loader == loader)
        if length and len(counts) == 1:
            return length // counts.pop()
    return 0
