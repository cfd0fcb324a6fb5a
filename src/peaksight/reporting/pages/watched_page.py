"""The page of a watched run: what each rank took, step by step, beside what was predicted."""

from peaksight.records.watched_report import WatchedReport
from peaksight.reporting import watched
from peaksight.reporting.json import watched_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import render_page

NUM_CHARTS = 8
NUM_STEPS = 12


def watched_to_html(report: WatchedReport) -> str:
    """`report` as a page that opens anywhere; the steps of the fullest ranks are drawn."""
    by_size = sorted(report.ranks, key=lambda rank: -rank.peak_reserved_bytes)
    drawn = [(report.ranks.index(rank), rank) for rank in by_size[:NUM_CHARTS] if rank.parts]
    return render_page(
        "watch.html",
        watched_to_json(report),
        scripts=assets.WATCH,
        charts=bool(drawn),
        report=report,
        drawn=drawn,
        num_steps=NUM_STEPS,
        watched=watched,
    )
