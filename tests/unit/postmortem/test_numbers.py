"""Every number of the sixty public reports, as printed and in bytes."""

import io
import json
import re
from pathlib import Path

import pytest

from peaksight.postmortem import read_log
from peaksight.units import GIB, KIB, MIB

REPORTS = Path(__file__).parents[2] / "data" / "oom-reports" / "reports.jsonl"
EXPECTED = json.loads((Path(__file__).parent / "expected_numbers.json").read_text(encoding="utf-8"))
TEXTS = {
    report["id"]: "\n".join(report["error_text"])
    for report in map(json.loads, REPORTS.read_text(encoding="utf-8").splitlines())
    if report["error_text"]
}
UNITS = {"bytes": 1, "": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "MB": MIB, "GB": GIB, "G": GIB}
SIZE = re.compile(r"(?<![\w.\[,])(\d+(?:\.\d+)?) ?(GiB|MiB|KiB|GB|MB|bytes|B|G)\b")


def read_text(text):
    return read_log(io.BytesIO(text.encode()), "text")


def numbers(message):
    return {figure.name: figure.printed for figure in message.figures}


@pytest.mark.parametrize("name", TEXTS)
def test_the_numbers_of_a_report(name):
    """Written down by hand from the text of each."""
    found = [
        {
            "dialect": message.dialect,
            "device": message.device,
            "rank": message.rank,
            "figures": numbers(message),
            "processes": {str(process.pid): process.printed for process in message.processes},
        }
        for message in read_text(TEXTS[name]).messages
    ]

    assert EXPECTED[name] == found


@pytest.mark.parametrize("name", TEXTS)
def test_no_size_of_a_report_is_left_out(name):
    """Whatever is written with a unit is a figure, or the size of a process."""
    messages = read_text(TEXTS[name]).messages
    found = " ".join(figure.printed for message in messages for figure in message.figures)
    found += " ".join(process.printed for message in messages for process in message.processes)
    squeezed = found.replace(" ", "")
    # TPU and the compiler print a size twice, rounded and in bytes; the bytes are taken.
    rounded = set(re.findall(r"(\S+) \(\d+ bytes\)", TEXTS[name]))
    printed = {"".join(size) for size in SIZE.findall(TEXTS[name])} - rounded

    assert {size for size in printed if size not in squeezed} == set()


@pytest.mark.parametrize("name", TEXTS)
def test_the_bytes_of_a_printed_number(name):
    """Units are binary, and 2^64 bytes are no size."""
    for message in read_text(TEXTS[name]).messages:
        for figure in message.figures:
            match = re.fullmatch(r"(?:\S+ \()?([\d.]+) ?([A-Za-z]*)(?: bytes\))?", figure.printed)
            if match is None:
                continue
            exact = float(match[1]) * UNITS[match[2]]
            assert figure.bytes == (None if exact >= 2**64 else round(exact))
