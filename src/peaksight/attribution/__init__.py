"""Who holds the peak, and whether it fits: computed from the capture alone."""

from peaksight.attribution.build import build_report
from peaksight.attribution.commits import commit_peak, commit_without_answer
from peaksight.attribution.comparison import JudgedRun, compare_runs
from peaksight.attribution.deadlocks import Disagreement, disagreement, in_deadlock
from peaksight.attribution.devices import capture_of_peak, report_on
from peaksight.attribution.fragmentation import pins_of
from peaksight.attribution.live_set import live_at_peak, live_set
from peaksight.attribution.ranks import peak_alike
from peaksight.attribution.recordings import build_recording_report
from peaksight.attribution.replayed import replay_capture, segments_when_reserved
from peaksight.attribution.traced import memory_traces
from peaksight.attribution.verdict import Verdict, first_failure, judge
from peaksight.attribution.watched_runs import build_watched_report

__all__ = [
    "Disagreement",
    "JudgedRun",
    "Verdict",
    "build_recording_report",
    "build_report",
    "build_watched_report",
    "capture_of_peak",
    "commit_peak",
    "commit_without_answer",
    "compare_runs",
    "disagreement",
    "first_failure",
    "in_deadlock",
    "judge",
    "live_at_peak",
    "live_set",
    "memory_traces",
    "peak_alike",
    "pins_of",
    "replay_capture",
    "report_on",
    "segments_when_reserved",
]
