"""Why it happened: rules that read records, each with its evidence, and none that guesses."""

from peaksight.diagnosis.explanation import explain

__all__ = ["explain"]
