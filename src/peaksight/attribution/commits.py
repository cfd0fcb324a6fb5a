"""The marginal peak of a commit: by how much it moved the peak of the script, and at which line most."""

from peaksight.attribution.comparison import JudgedRun, compare_runs
from peaksight.records import CommitPeak


def commit_peak(commit: str, subject: str, run: JudgedRun, since: str | None, before: JudgedRun | None) -> CommitPeak:
    """The peak of `run` at `commit`, against that of the run `before` at the commit `since`."""
    comparison = compare_runs(before, run) if before is not None else None
    largest = comparison.by_line[0] if comparison is not None and comparison.by_line else None
    return CommitPeak(
        commit=commit,
        subject=subject,
        since=since,
        allocated_bytes=run.report.peak.allocated_bytes,
        reserved_bytes=run.report.peak.reserved_bytes,
        fits=run.report.fits,
        allocated_difference_bytes=comparison.allocated_difference_bytes if comparison is not None else None,
        largest=largest if largest is not None and largest.difference_bytes else None,
        failure="",
    )


def commit_without_answer(commit: str, subject: str, failure: str) -> CommitPeak:
    """A commit whose script gave no answer, because of `failure`."""
    return CommitPeak(
        commit=commit,
        subject=subject,
        since=None,
        allocated_bytes=None,
        reserved_bytes=None,
        fits=None,
        allocated_difference_bytes=None,
        largest=None,
        failure=failure,
    )
