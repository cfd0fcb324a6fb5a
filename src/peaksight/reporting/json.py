"""The report as JSON: `peaksight.report/1`, keys in the order of the record."""

from collections.abc import Sequence

import msgspec

from peaksight.records import CommitHistory, Comparison, JobReading, Reading, Report
from peaksight.records.capsule_report import RunReading
from peaksight.records.certificate import Certificate
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.encoding import encode_json
from peaksight.records.proposals import FixReport
from peaksight.records.recording import RecordingReport
from peaksight.records.sweep import SweepReport
from peaksight.records.watched_report import WatchedReport


def report_to_json(report: Report) -> str:
    """`report` as indented JSON that ends in a newline; unknown values are null."""
    return _indented(encode_json(report))


def report_from_json(text: str | bytes) -> Report:
    """The report that `text` holds; msgspec.ValidationError where it does not follow the schema."""
    return msgspec.json.decode(text, type=Report)


def answers_to_json(answers: Sequence[Reading | JobReading | RecordingReport | DeviceProfile | RunReading]) -> str:
    """What `peaksight read` found in one file as indented JSON that ends in a newline, in several as an array."""
    return _indented(encode_json(answers[0] if len(answers) == 1 else answers))


def comparison_to_json(answer: Comparison | CommitHistory) -> str:
    """What `peaksight compare` found as indented JSON that ends in a newline."""
    return _indented(encode_json(answer))


def certificate_to_json(certificate: Certificate) -> str:
    """`certificate` as indented JSON that ends in a newline; what is not finite is null."""
    return _indented(encode_json(certificate))


def fix_to_json(found: FixReport) -> str:
    """What `fix` found as indented JSON that ends in a newline."""
    return _indented(encode_json(found))


def sweep_to_json(found: SweepReport) -> str:
    """What `fix --sweep` and its like found as indented JSON that ends in a newline."""
    return _indented(encode_json(found))


def watched_to_json(report: WatchedReport) -> str:
    """The report of a watched run as indented JSON that ends in a newline."""
    return _indented(encode_json(report))


def _indented(encoded: bytes) -> str:
    return msgspec.json.format(encoded, indent=2).decode() + "\n"
