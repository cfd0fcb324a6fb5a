"""Who holds the peak, and whether it fits: computed from the capture alone."""

from peaksight.attribution.build import build_report
from peaksight.attribution.devices import capture_of_peak, report_on
from peaksight.attribution.live_set import live_at_peak, live_set
from peaksight.attribution.recordings import build_recording_report
from peaksight.attribution.replayed import replay_capture
from peaksight.attribution.verdict import Verdict, first_failure, judge

__all__ = [
    "Verdict",
    "build_recording_report",
    "build_report",
    "capture_of_peak",
    "first_failure",
    "judge",
    "live_at_peak",
    "live_set",
    "replay_capture",
    "report_on",
]
