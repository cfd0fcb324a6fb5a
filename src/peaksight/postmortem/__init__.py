"""Logs and error text -> records: what was said about memory, in every dialect, and what the log says of the job."""

from peaksight.postmortem.log import read_log

__all__ = ["read_log"]
