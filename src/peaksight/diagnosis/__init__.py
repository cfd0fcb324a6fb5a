"""Why it happened: rules that read records, each with its evidence, and none that guesses."""

from peaksight.diagnosis.explanation import explain
from peaksight.diagnosis.jobs import explain_job, rank_of

__all__ = ["explain", "explain_job", "rank_of"]
