"""The JSON, a contract with other programs."""

import json

import pytest

from helpers import holder_of, oom_of, report_of
from peaksight.records import Category
from peaksight.reporting import report_from_json, report_to_json
from peaksight.units import GIB

REPORT = report_of(holder_of(GIB, Category.PARAMETER), fits=False, oom=oom_of(GIB))

KEYS = {
    (): "schema argv gpu torch fits peak oom steps live_at_peak findings not_simulated not_reached script_exit seconds",
    ("gpu",): "name total_bytes usable_bytes",
    ("peak",): "allocated_bytes reserved_bytes requested_bytes process_bytes step phase at",
    ("oom",): "message requested_bytes allocated_bytes reserved_bytes step phase at backward_at",
    ("steps", 0): "peak_allocated_bytes peak_reserved_bytes",
    ("live_at_peak", 0): "bytes count category module source op phase step",
}


@pytest.mark.parametrize("path", KEYS, ids=str)
def test_the_promised_keys_are_there(path):
    """Others may be added, none may go."""
    found = json.loads(report_to_json(REPORT))
    for key in path:
        found = found[key]

    assert set(KEYS[path].split()) <= set(found)


def test_a_report_survives_the_round_trip():
    """What is written reads back as the same record, enumerations included."""
    assert report_from_json(report_to_json(REPORT)) == REPORT


def test_a_file_name_that_is_not_utf8():
    """It can't be written as it is: JSON is UTF-8."""
    report = report_of(argv=(b"caf\xe9.py".decode(errors="surrogateescape"),))

    assert report_from_json(report_to_json(report)) == report_of(argv=("caf?.py",))


def test_the_schema_name_comes_first():
    """A reader knows by the first key what follows; the order of keys is the record's."""
    assert report_to_json(REPORT).startswith('{\n  "schema": "peaksight.report/1"')
