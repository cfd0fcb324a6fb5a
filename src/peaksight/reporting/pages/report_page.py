"""The page of `peaksight run` and `peaksight report`."""

from collections.abc import Sequence

from peaksight.records import Report
from peaksight.reporting import why
from peaksight.reporting.json import report_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.card import card_bar
from peaksight.reporting.pages.excerpts import Excerpt, excerpts_of
from peaksight.reporting.pages.frame import render_page


def report_to_html(report: Report, excerpts: Sequence[Excerpt] = ()) -> str:
    """`report` as a page that opens anywhere; `excerpts` are of lines of the script where it could be read."""
    return render_page(
        "report.html",
        report_to_json(report),
        scripts=assets.REPORT,
        charts=bool(report.live_at_peak or report.course),
        report=report,
        card=card_bar(report),
        why=why,
        excerpts_of=lambda finding: excerpts_of(finding, excerpts),
    )
