"""OOM capsules (`peaksight watch`): read without torch, also those that were cut short."""

from peaksight.postmortem.capsules.loading import is_capsule
from peaksight.postmortem.capsules.recordings import read_capsule

__all__ = ["is_capsule", "read_capsule"]
