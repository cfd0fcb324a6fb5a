"""What a log says happened, and why: rules that read its text and figures."""

from peaksight.diagnosis.logs.explanation import explain
from peaksight.diagnosis.logs.jobs import explain_job, rank_of

__all__ = ["explain", "explain_job", "rank_of"]
