"""The report of a watched run, from the records of its processes."""

from collections.abc import Iterator, Sequence
from statistics import median

from peaksight.records.watched import Watched, WatchedStep
from peaksight.records.watched_report import WATCHED_SCHEMA, WatchedPart, WatchedRank, WatchedReport

# More parts than a chart has columns say nothing more.
MAX_PARTS = 600


def build_watched_report(records: Sequence[Watched]) -> WatchedReport:
    """The report of the launch in `records` that was started last, at least one record."""
    last = max(records, key=lambda each: each.process.started).process
    ranks = [rank for each in records if each.process.run == last.run for rank in _ranks(each)]
    return WatchedReport(
        schema=WATCHED_SCHEMA,
        run=last.run,
        argv=last.argv,
        world_size=last.world_size,
        ranks=tuple(sorted(ranks, key=lambda each: (each.rank, each.device or 0))),
    )


def _ranks(watched: Watched) -> Iterator[WatchedRank]:
    """One for each card of a process; its events are with the first."""
    used = sorted({step.device for step in watched.steps if step.device is not None})
    devices: tuple[int | None, ...] = (*used,) or (None,)
    for device in devices:
        steps = [step for step in watched.steps if step.device == device]
        yield _rank(watched, device, steps, is_first=device == devices[0])


def _rank(watched: Watched, device: int | None, steps: Sequence[WatchedStep], *, is_first: bool) -> WatchedRank:
    process = watched.process
    fullest = max(steps, key=lambda step: step.peak_reserved_bytes, default=None)
    errors = {step.step: error for step in steps if (error := _error(step)) is not None}
    worst = max(errors, key=lambda step: abs(errors[step]), default=None)
    return WatchedRank(
        rank=process.rank,
        host=process.host,
        pid=process.pid,
        device=device,
        card=next((card for card in watched.cards if card.device == device), None),
        num_steps=len(steps),
        peak_step=fullest.step if fullest else 0,
        peak_allocated_bytes=max((step.peak_allocated_bytes for step in steps), default=0),
        peak_reserved_bytes=fullest.peak_reserved_bytes if fullest else 0,
        seconds=median([step.seconds for step in steps]) if steps else 0.0,
        retries=sum(step.retries for step in steps),
        ooms=sum(step.ooms for step in steps),
        worst_error=None if worst is None else errors[worst],
        worst_step=worst,
        parts=tuple(_parts(steps)),
        events=watched.events if is_first else (),
        scalars=watched.scalars if is_first else (),
        expectations=watched.expectations if is_first else (),
        exit_code=watched.end.exit_code if watched.end else None,
        error=watched.end.error if watched.end else "",
    )


def _parts(steps: Sequence[WatchedStep]) -> Iterator[WatchedPart]:
    size = -(-len(steps) // MAX_PARTS) or 1
    for first in range(0, len(steps), size):
        part = steps[first : first + size]
        yield WatchedPart(num_steps=len(part), step=max(part, key=lambda step: step.peak_reserved_bytes))


def _error(step: WatchedStep) -> float | None:
    """By which part of what was measured the prediction was off."""
    if step.predicted_allocated_bytes is None or not step.peak_allocated_bytes:
        return None
    return step.predicted_allocated_bytes / step.peak_allocated_bytes - 1
