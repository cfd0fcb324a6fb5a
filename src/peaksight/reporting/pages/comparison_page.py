"""The pages of `peaksight compare`: two runs beside each other, and the peaks of commits."""

from peaksight.records import CommitHistory, Comparison
from peaksight.reporting import comparison_sentences, differences
from peaksight.reporting.json import comparison_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import render_page


def comparison_to_html(comparison: Comparison) -> str:
    """`comparison` as a page that opens anywhere."""
    return render_page(
        "comparison.html",
        comparison_to_json(comparison),
        scripts=assets.COMPARISON,
        charts=True,
        comparison=comparison,
        differences=differences,
        words=comparison_sentences,
    )


def commits_to_html(history: CommitHistory) -> str:
    """The same for the peaks of commits."""
    return render_page(
        "commits.html",
        comparison_to_json(history),
        scripts=assets.COMMITS,
        charts=True,
        history=history,
        words=comparison_sentences,
    )
