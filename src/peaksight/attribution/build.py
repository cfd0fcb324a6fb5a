"""Puts the report together."""

from dataclasses import replace

from peaksight.attribution.budget import budget_of
from peaksight.attribution.course import course_of, failed_tick, held_at_tick
from peaksight.attribution.late_release import with_late_release
from peaksight.attribution.levels import Levels
from peaksight.attribution.live_set import live_at_peak
from peaksight.attribution.verdict import allowed_by_script, judge
from peaksight.gpus import Room, outside_the_allocator
from peaksight.records import Capture, CategoryBytes, Course, NotReached, Peak, Phase, Report, StepReport

SCHEMA = "peaksight.report/1"


def build_report(capture: Capture, room: Room, unlimited: Capture | None = None) -> Report:
    """The report of `capture` on the card of `room`.

    `unlimited` is the same run on a card without a limit, where one was made because a failure ended the first, on this
    card or on another: what the job needs is read from it.
    """
    if unlimited is None:
        capture = with_late_release(capture)
    else:
        unlimited = with_late_release(unlimited)
    verdict, whole = judge(capture, room, unlimited), unlimited or capture
    live, reservable_bytes = live_at_peak(whole), _reservable_bytes(whole, room)
    levels = Levels(whole)
    course = course_of(whole, levels, failed_tick(capture, unlimited))
    return Report(
        schema=SCHEMA,
        argv=capture.argv,
        gpu=replace(room.gpu, usable_bytes=reservable_bytes),
        torch=capture.versions.installed,
        device_rules=capture.versions.device_rules,
        fits=verdict.fits,
        peak=_peak(whole, room),
        oom=verdict.oom,
        steps=_steps(whole, levels, course),
        live_at_peak=live,
        findings=None,
        not_simulated=whole.not_simulated + outside_the_allocator(room),
        not_reached=_places(whole.not_reached),
        not_reached_lines=whole.not_reached or (),
        writes=whole.writes,
        finished=whole.finished,
        script_exit=capture.script_exit,
        seconds=capture.seconds + (unlimited.seconds if unlimited else 0),
        caught_ooms=len(capture.failures) - (capture.fatal is not None),
        retries=verdict.retries,
        undecided=verdict.undecided,
        device=capture.device,
        rank=capture.rank,
        world_size=capture.world_size,
        course=course,
        budget=budget_of(
            live,
            room,
            held_bytes=_held_bytes(whole),
            outside_bytes=whole.outside_bytes,
            reservable_bytes=reservable_bytes,
            fits=verdict.fits,
        ),
        programs=whole.program_calls,
    )


def _reservable_bytes(capture: Capture, room: Room) -> int:
    """What libraries leave to the allocator, and no more than the script itself allowed at last."""
    left = max(0, room.usable_bytes - capture.outside_bytes)
    if capture.pool_bytes is not None:
        return min(left, capture.pool_bytes)
    allowed_bytes = allowed_by_script(capture)
    return left if allowed_bytes is None else min(left, allowed_bytes)


def _held_bytes(capture: Capture) -> int:
    """What the allocator holds of the card at most."""
    return max(capture.peak_reserved_bytes, (capture.pool_bytes or 0) if capture.preallocated else 0)


def _peak(capture: Capture, room: Room) -> Peak:
    """The peak, and the allocation that made it: none of them when the script never used the card."""
    maker = next((a for a in capture.allocations if a.born == capture.peak_tick), None)
    return Peak(
        allocated_bytes=capture.peak_allocated_bytes,
        reserved_bytes=capture.peak_reserved_bytes,
        requested_bytes=capture.peak_requested_bytes,
        process_bytes=room.context_bytes + _held_bytes(capture) + capture.outside_bytes,
        step=maker.step if maker else 0,
        phase=maker.phase if maker else Phase.OTHER,
        at=maker.source if maker else "",
    )


def _places(lines: tuple[NotReached, ...] | None) -> tuple[str, ...] | None:
    return None if lines is None else tuple(line.at for line in lines)


def _steps(capture: Capture, levels: Levels, course: Course | None) -> tuple[StepReport, ...]:
    seconds = {work.step: work.seconds for work in capture.work}
    return tuple(
        StepReport(
            peak_allocated_bytes=step.peak_allocated_bytes,
            peak_reserved_bytes=step.peak_reserved_bytes,
            held=_held(course, levels.peak_tick(step)),
            predicted_seconds=seconds.get(step.step),
        )
        for step in capture.steps
        if step.complete
    )


def _held(course: Course | None, peak_tick: int | None) -> tuple[CategoryBytes, ...]:
    return () if course is None or peak_tick is None else held_at_tick(course, peak_tick)
