"""The report of a run of several cards or ranks: that of the one on which it is tightest, with a row for each."""

from collections.abc import Sequence
from dataclasses import replace

from peaksight.attribution.build import build_report
from peaksight.attribution.ranks import rank_differences
from peaksight.gpus import Room
from peaksight.records import WITHOUT_ANSWER, Capture, DeviceReport, Report

_ORDER = {False: 0, None: 1, True: 2}

# A rank and the index of its card.
_Place = tuple[int, int]


def report_on(captures: Sequence[Capture], room: Room) -> Report:
    """The report of one command, on cards that are all like the one of `room`.

    `captures` are those of each rank and each card that it used, in order, and then those of the runs on cards without
    a limit, where a failure ended the first.
    """
    run, unlimited = _runs(captures)
    reports = [
        build_report(run.get(place, unlimited.get(place)), room, unlimited.get(place))  # type: ignore[arg-type]
        for place in sorted(run.keys() | unlimited.keys())
    ]
    worst = min(reports, key=_ease)
    return replace(
        worst,
        devices=tuple(map(_row, reports)),
        rank_differences=rank_differences(worst, (report for report in reports if report.rank != worst.rank)),
        caught_ooms=sum(report.caught_ooms for report in reports),
    )


def capture_of_peak(captures: Sequence[Capture], device: int, rank: int = 0) -> Capture:
    """The capture that the peak of card `device` of `rank` is read from: that without a limit, if there is one."""
    run, unlimited = _runs(captures)
    return unlimited.get((rank, device)) or run[rank, device]


def first_runs(captures: Sequence[Capture]) -> tuple[Capture, ...]:
    """Those of the run on cards as they are, which a failure may have ended."""
    return tuple(_runs(captures)[0].values())


def _runs(captures: Sequence[Capture]) -> tuple[dict[_Place, Capture], dict[_Place, Capture]]:
    """The captures of both runs by rank and card: the second begins where these do not go on rising."""
    runs: tuple[dict[_Place, Capture], dict[_Place, Capture]] = ({}, {})
    before = (-1, -1)
    number = 0
    for capture in captures:
        place = capture.rank, capture.device
        number |= place <= before
        runs[number][place] = capture
        before = place
    return runs


def _ease(report: Report) -> tuple[bool, bool, int, int, int]:
    """How easily the run fits: first come cards on which it failed, then those on which it would, then the fullest.

    A rank that ended without an answer leaves none for the job.
    """
    head_room = report.gpu.usable_bytes - report.peak.reserved_bytes
    has_answer = report.finished not in WITHOUT_ANSWER
    return report.oom is None, has_answer, _ORDER[report.fits], head_room, -report.peak.allocated_bytes


def _row(report: Report) -> DeviceReport:
    return DeviceReport(
        index=report.device,
        rank=report.rank,
        fits=report.fits,
        usable_bytes=report.gpu.usable_bytes,
        peak=report.peak,
        oom=None if report.oom is None else replace(report.oom, live=()),
    )
