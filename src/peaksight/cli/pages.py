"""Web pages of answers, whose libraries are imported when one is asked for, for few answers are pages."""

from collections.abc import Sequence

from peaksight.records import CommitHistory, Comparison, JobReading, Reading
from peaksight.records.capsule_report import RunReading
from peaksight.records.certificate import Certificate
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.proposals import FixReport
from peaksight.records.recording import RecordingReport
from peaksight.records.sweep import SweepReport
from peaksight.records.watched_report import WatchedReport


def fix_page(found: FixReport) -> str:
    """Of the plans that `fix` found."""
    from peaksight.reporting.pages.fix_page import fix_to_html

    return fix_to_html(found)


def sweep_page(found: SweepReport) -> str:
    """Of a run at several values."""
    from peaksight.reporting.pages.fix_page import sweep_to_html

    return sweep_to_html(found)


def comparison_page(found: Comparison) -> str:
    """Of two runs beside each other."""
    from peaksight.reporting.pages.comparison_page import comparison_to_html

    return comparison_to_html(found)


def commits_page(found: CommitHistory) -> str:
    """Of the peaks of commits."""
    from peaksight.reporting.pages.comparison_page import commits_to_html

    return commits_to_html(found)


def certificate_page(certificate: Certificate) -> str:
    """Of a certificate."""
    from peaksight.reporting.pages.certificate_page import certificate_to_html

    return certificate_to_html(certificate)


def answers_page(answers: Sequence[Reading | JobReading | RecordingReport | DeviceProfile | RunReading]) -> str:
    """Of what was read."""
    from peaksight.reporting.pages.read_page import answers_to_html

    return answers_to_html(answers)


def watched_page(report: WatchedReport) -> str:
    """Of a watched run."""
    from peaksight.reporting.pages.watched_page import watched_to_html

    return watched_to_html(report)
