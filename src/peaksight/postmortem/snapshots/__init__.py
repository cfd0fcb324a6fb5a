"""Memory snapshots (`torch.cuda.memory._dump_snapshot`): read without torch, and without running what is in them."""

from peaksight.postmortem.snapshots.loading import is_snapshot
from peaksight.postmortem.snapshots.recordings import read_snapshot

__all__ = ["is_snapshot", "read_snapshot"]
