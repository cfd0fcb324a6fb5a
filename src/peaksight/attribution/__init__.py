"""Who holds the peak, and whether it fits: computed from the capture alone."""

from peaksight.attribution.build import build_report
from peaksight.attribution.live_set import live_set
from peaksight.attribution.room import Room, room_on
from peaksight.attribution.verdict import Verdict, first_failure, judge

__all__ = ["Room", "Verdict", "build_report", "first_failure", "judge", "live_set", "room_on"]
