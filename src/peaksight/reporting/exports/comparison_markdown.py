"""Two runs beside each other, and the peaks of commits, for a pull request or the summary of a job."""

from peaksight.records import CommitHistory, Comparison
from peaksight.reporting import comparison_sentences, differences
from peaksight.reporting.markdown import markdown_templates
from peaksight.units import format_bytes, format_difference


def comparison_to_markdown(comparison: Comparison) -> str:
    """The difference in one sentence, what the peaks are and of which categories; the rest is folded."""
    page = markdown_templates().get_template("comparison.md")
    return page.render(
        comparison=comparison, words=comparison_sentences, differences=differences, size=_size, change=_change
    )


def commits_to_markdown(history: CommitHistory) -> str:
    """A row for each commit, oldest first, with what changed its peak most."""
    parents = [None, *(commit.commit for commit in history.commits[:-1])]
    rows = [
        (commit, "; ".join([commit.subject, *comparison_sentences.commit_notes(commit, parent)]))
        for commit, parent in zip(history.commits, parents, strict=True)
    ]
    page = markdown_templates().get_template("commits.md")
    return page.render(history=history, rows=rows, words=comparison_sentences, size=_size, change=_change)


def _size(num_bytes: int | None) -> str:
    return "" if num_bytes is None else format_bytes(num_bytes)


def _change(num_bytes: int | None) -> str:
    return "" if num_bytes is None else format_difference(num_bytes)
