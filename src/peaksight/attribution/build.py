"""Puts the report together."""

from peaksight.attribution.live_set import live_set
from peaksight.attribution.verdict import Verdict, judge
from peaksight.gpus import Card, Room, outside_the_allocator, room_on
from peaksight.records import Capture, Peak, Phase, Report, StepReport

SCHEMA = "peaksight.report/1"


def build_report(capture: Capture, card: Card, *, reserved_by_others_bytes: int = 0) -> Report:
    """The report of `capture` on `card`, of which other processes hold `reserved_by_others_bytes`."""
    room = room_on(card, others_bytes=reserved_by_others_bytes)
    verdict = _verdict(capture, room)
    return Report(
        schema=SCHEMA,
        argv=capture.argv,
        gpu=room.gpu,
        torch=capture.versions.installed,
        device_rules=capture.versions.device_rules,
        fits=verdict.fits,
        peak=_peak(capture, card),
        oom=verdict.oom,
        steps=_steps(capture),
        live_at_peak=live_set(capture),
        findings=None,
        not_simulated=capture.not_simulated + outside_the_allocator(room),
        not_reached=None,
        writes=capture.writes,
        finished=capture.finished,
        script_exit=capture.script_exit,
        seconds=capture.seconds,
    )


def _verdict(capture: Capture, room: Room) -> Verdict:
    """The verdict of the whole run; one that was cut short can still fail, but nothing shows that it fits."""
    verdict = judge(capture, room)
    if verdict.oom is None and capture.finished in ("failed", "interrupted"):
        return Verdict(fits=None, oom=None)
    return verdict


def _peak(capture: Capture, card: Card) -> Peak:
    """The peak, and the allocation that made it: none of them when the script never used the card."""
    maker = next((a for a in capture.allocations if a.born == capture.peak_tick), None)
    return Peak(
        allocated_bytes=capture.peak_allocated_bytes,
        reserved_bytes=capture.peak_reserved_bytes,
        requested_bytes=capture.peak_requested_bytes,
        process_bytes=None if card.context_bytes is None else capture.peak_reserved_bytes + card.context_bytes,
        step=maker.step if maker else 0,
        phase=maker.phase if maker else Phase.OTHER,
        at=maker.source if maker else "",
    )


def _steps(capture: Capture) -> tuple[StepReport, ...]:
    return tuple(
        StepReport(
            peak_allocated_bytes=step.peak_allocated_bytes,
            peak_reserved_bytes=step.peak_reserved_bytes,
        )
        for step in capture.steps
        if step.complete
    )
