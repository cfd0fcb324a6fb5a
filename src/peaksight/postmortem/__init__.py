"""What is left of a run that failed, as records: logs and error text, and memory snapshots (`snapshots`)."""

from peaksight.postmortem.log import read_log

__all__ = ["read_log"]
