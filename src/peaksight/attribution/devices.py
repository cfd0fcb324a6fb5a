"""The report of a run that used several cards: that of the card on which it is tightest, with a row for each."""

from collections.abc import Sequence
from dataclasses import replace

from peaksight.attribution.build import build_report
from peaksight.gpus import Room
from peaksight.records import Capture, DeviceReport, Report

_RANKS = {False: 0, None: 1, True: 2}


def report_on(captures: Sequence[Capture], room: Room) -> Report:
    """The report of one command, on cards that are all like the one of `room`.

    `captures` are those of each card that its run used, by index, and then those of the run on cards without a limit,
    where a failure ended the first.
    """
    run, unlimited = _runs(captures)
    reports = [
        build_report(run.get(index, unlimited.get(index)), room, unlimited.get(index))  # type: ignore[arg-type]
        for index in sorted(run.keys() | unlimited.keys())
    ]
    worst = min(reports, key=_ease)
    return replace(
        worst,
        devices=tuple(map(_row, reports)),
        caught_ooms=sum(report.caught_ooms for report in reports),
    )


def capture_of_peak(captures: Sequence[Capture], device: int) -> Capture:
    """The capture that the peak of card `device` is read from: that of the run without a limit, if there is one."""
    run, unlimited = _runs(captures)
    return unlimited.get(device) or run[device]


def _runs(captures: Sequence[Capture]) -> tuple[dict[int, Capture], dict[int, Capture]]:
    """The captures of both runs by their card: the second run begins where the indices do not go on rising."""
    runs: tuple[dict[int, Capture], dict[int, Capture]] = ({}, {})
    before = -1
    place = 0
    for capture in captures:
        place |= capture.device <= before
        runs[place][capture.device] = capture
        before = capture.device
    return runs


def _ease(report: Report) -> tuple[bool, int, int, int]:
    """How easily the run fits: first come cards on which it failed, then those on which it would, then the fullest."""
    head_room = report.gpu.usable_bytes - report.peak.reserved_bytes
    return report.oom is None, _RANKS[report.fits], head_room, -report.peak.allocated_bytes


def _row(report: Report) -> DeviceReport:
    return DeviceReport(
        index=report.device,
        fits=report.fits,
        usable_bytes=report.gpu.usable_bytes,
        peak=report.peak,
        oom=None if report.oom is None else replace(report.oom, live=()),
    )
