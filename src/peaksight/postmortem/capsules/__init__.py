"""OOM capsules (`peaksight watch`): read without torch, also those that were cut short."""

from peaksight.postmortem.capsules.loading import is_capsule
from peaksight.postmortem.capsules.recordings import OpenedCapsule, read_capsule

__all__ = ["OpenedCapsule", "is_capsule", "read_capsule"]
