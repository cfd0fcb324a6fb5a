"""The report as JSON: `peaksight.report/1`, keys in the order of the record."""

from collections.abc import Sequence

import msgspec

from peaksight.records import CommitHistory, Comparison, JobReading, Reading, Report
from peaksight.records.capsule_report import RunReading
from peaksight.records.certificate import Certificate
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.encoding import encode_json
from peaksight.records.plan import Plan
from peaksight.records.proposals import FixReport
from peaksight.records.recording import RecordingReport
from peaksight.records.sweep import SweepReport


def report_to_json(report: Report) -> str:
    """`report` as indented JSON that ends in a newline; unknown values are null."""
    return _indented(encode_json(report))


def report_from_json(text: str | bytes) -> Report:
    """The report that `text` holds; msgspec.ValidationError where it does not follow the schema."""
    return msgspec.json.decode(text, type=Report)


def report_schema() -> str:
    """The JSON schema of the report, as published in docs/report.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(Report), order="sorted"))


def answers_to_json(answers: Sequence[Reading | JobReading | RecordingReport | DeviceProfile | RunReading]) -> str:
    """What `peaksight read` found in one file as indented JSON that ends in a newline, in several as an array."""
    return _indented(encode_json(answers[0] if len(answers) == 1 else answers))


def comparison_to_json(answer: Comparison | CommitHistory) -> str:
    """What `peaksight compare` found as indented JSON that ends in a newline."""
    return _indented(encode_json(answer))


def comparison_schema() -> str:
    """The JSON schema of a comparison, as published in docs/comparison.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(Comparison), order="sorted"))


def commits_schema() -> str:
    """The JSON schema of the peaks of commits, as published in docs/commits.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(CommitHistory), order="sorted"))


def reading_schema() -> str:
    """The JSON schema of a reading, as published in docs/reading.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(Reading), order="sorted"))


def job_schema() -> str:
    """The JSON schema of the logs of one job, as published in docs/job.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(JobReading), order="sorted"))


def recording_schema() -> str:
    """The JSON schema of a recording, as published in docs/recording.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(RecordingReport), order="sorted"))


def run_reading_schema() -> str:
    """The JSON schema of what a watched run left, as published in docs/capsule.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(RunReading), order="sorted"))


def certificate_to_json(certificate: Certificate) -> str:
    """`certificate` as indented JSON that ends in a newline; what is not finite is null."""
    return _indented(encode_json(certificate))


def fix_to_json(found: FixReport) -> str:
    """What `fix` found as indented JSON that ends in a newline."""
    return _indented(encode_json(found))


def plan_schema() -> str:
    """The JSON schema of a plan, as published in docs/plan.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(Plan), order="sorted"))


def sweep_to_json(found: SweepReport) -> str:
    """What `fix --sweep` and its like found as indented JSON that ends in a newline."""
    return _indented(encode_json(found))


def fix_schema() -> str:
    """The JSON schema of what `fix` finds, as published in docs/fix.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(FixReport), order="sorted"))


def certificate_schema() -> str:
    """The JSON schema of a certificate, as published in docs/certificate.schema.json."""
    return _indented(msgspec.json.encode(msgspec.json.schema(Certificate), order="sorted"))


def _indented(encoded: bytes) -> str:
    return msgspec.json.format(encoded, indent=2).decode() + "\n"
