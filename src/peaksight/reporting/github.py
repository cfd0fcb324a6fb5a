"""The answers of `run`, `fix` and `compare` for GitHub Actions: annotations."""

from collections.abc import Callable, Iterator

from peaksight.records import Comparison, Report
from peaksight.records.proposals import FixReport
from peaksight.records.sweep import SweepReport
from peaksight.reporting import comparison_sentences, plans, why
from peaksight.reporting.sentences import verdict
from peaksight.reporting.sweeps import sweep_line

# As many of each level as GitHub shows of one step, less the verdict.
NUM_WARNINGS = 9
_LEVELS = {True: "notice", False: "error", None: "warning"}

# From `train.py:88` to the path in the repository and the line; None where there is no such file.
Locate = Callable[[str], tuple[str, int] | None]


def report_annotations(report: Report, locate: Locate) -> Iterator[str]:
    """The verdict at the line of the failure or the peak, and each cause at its own line."""
    at = report.oom.at if report.oom else report.peak.at
    yield _annotation(_LEVELS[report.fits], "peaksight", verdict(report), locate(at))
    for finding in why.shown_findings(report)[:NUM_WARNINGS]:
        advice = "".join(f" {why.sentence(fix.text)}" for fix in finding.fixes[:1])
        text = f"{finding.title} ({why.size_of(finding)}).{advice}"
        yield _annotation("warning", f"peaksight: {finding.rule}", text, locate(finding.at))


def fix_annotations(found: FixReport, locate: Locate) -> Iterator[str]:
    """The answer, at the line of the peak as it is."""
    level = "notice" if found.best or found.original.fits else "error"
    yield _annotation(level, "peaksight fix", plans.answer_line(found), locate(found.original.outcome.at))


def comparison_annotations(found: Comparison, locate: Locate) -> Iterator[str]:
    """The difference, at the line of the peak of B: a warning where it is higher."""
    level = "warning" if found.allocated_difference_bytes > 0 else "notice"
    yield _annotation(level, "peaksight compare", comparison_sentences.happened(found), locate(found.b.peak.at))


def sweep_annotations(found: SweepReport, locate: Locate) -> Iterator[str]:
    """The answer, at the line of the peak of the best value, else of the first one."""
    rows = [found.best, *found.rows] if found.best else list(found.rows)
    at = next((row.tried.outcome.at for row in rows if row), "")
    yield _annotation("notice" if found.best else "error", "peaksight fix", sweep_line(found), locate(at))


def _annotation(level: str, title: str, text: str, place: tuple[str, int] | None) -> str:
    """A workflow command: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    properties = {} if place is None else {"file": place[0], "line": str(place[1])}
    properties["title"] = title
    words = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {words}::{_data(text)}"


def _data(text: str) -> str:
    """`text` with what would end the command escaped, as @actions/core does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
