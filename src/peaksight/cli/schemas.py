"""The JSON Schemas of what the commands print, as docs/ has them: generated from the records."""

from collections.abc import Mapping
from typing import Any

import msgspec

from peaksight.allocator import Replay
from peaksight.cli.gpus import CardFacts
from peaksight.records import CommitHistory, Comparison, JobReading, Reading, Report
from peaksight.records.capsule_report import RunReading
from peaksight.records.certificate import Certificate
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.plan import Plan
from peaksight.records.proposals import FixReport
from peaksight.records.recording import RecordingReport
from peaksight.records.sweep import SweepReport
from peaksight.records.watched_report import WatchedReport

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

# By the name of what they describe, as in `peaksight.report/1`, with the record; that of a file is in `FILES`.
SCHEMAS: Mapping[str, Any] = {
    "peaksight.report/1": Report,
    "peaksight.fix/1": FixReport,
    "peaksight.sweep/1": SweepReport,
    "peaksight.plan/1": Plan,
    "peaksight.comparison/1": Comparison,
    "peaksight.commits/1": CommitHistory,
    "peaksight.certificate/1": Certificate,
    "peaksight.reading/1": Reading,
    "peaksight.job/1": JobReading,
    "peaksight.recording/1": RecordingReport,
    "peaksight.run-reading/1": RunReading,
    "peaksight.device-profile/1": DeviceProfile,
    "peaksight.watched/1": WatchedReport,
    "peaksight.gpus/1": tuple[CardFacts, ...],  # type: ignore[valid-type]
    "peaksight.replay/1": Replay,
}
# Of one whose file is called otherwise.
_FILES = {"peaksight.run-reading/1": "capsule"}


def file_of(name: str) -> str:
    """The file in docs/ of the schema `name`: `report.schema.json`."""
    return f"{_FILES.get(name) or name.removeprefix('peaksight.').partition('/')[0]}.schema.json"


def identifier_of(name: str) -> str:
    """The `$id` of the schema `name`: `urn:peaksight:report:1`."""
    return f"urn:{name.replace('.', ':').replace('/', ':')}"


def published_schema(name: str) -> str:
    """The JSON Schema `name` as indented JSON that ends in a newline.

    Its `$id` and, where what it describes says so itself, the `schema` there are fixed.
    """
    record = SCHEMAS[name]
    (schema,), definitions = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    told = definitions.get(getattr(record, "__name__", ""), {}).get("properties", {})
    if "schema" in told:
        told["schema"] = {"const": name}
    whole = {"$schema": _DIALECT, "$id": identifier_of(name), **schema, "$defs": definitions}
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=2).decode() + "\n"
