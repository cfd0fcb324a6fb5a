"""Limits that are predicted before they are measured: which they are, how that is done, and what is told of both."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.accuracy.first_limits import FirstLimit, first_limits, render_first_limits
from benchmarks.accuracy.workloads import PREDICTED_FIRST, TRUTH
from benchmarks.predicted_first.predict_limits import Peaks, identifier, limits
from peaksight.units import GIB

PREDICTED = {
    "limit_mib": 1025,
    "predicted_on": "2026-11-30",
    "torch": "2.14.1",
    "device_rules": "2.11+cu130",
    "predicted": {
        "fits": False,
        "line": "train.py:5",
        "size": "2.00 MiB",
        "caught_ooms": 1,
        "op": "aten::mm",
        "library": "",
        "phase": "backward",
        "step": 3,
    },
}
OOM = {
    "kind": "oom",
    "text": "CUDA out of memory. Tried to allocate 2.00 MiB.",
    "line": "train.py:5",
    "innermost": "x:1:f",
}
MEASURED = {"num_ooms": 2, "error": OOM, "measured_on": "2026-12-01", "device": "NVIDIA H200", "torch": "2.11.0"}


def test_a_limit_is_a_part_of_a_peak_and_meets_no_segment_exactly():
    """An odd number of MiB: of the peaks of 4 and 8 GiB, and between them."""
    peaks = Peaks(allocated_bytes=4 * GIB, reserved_bytes=8 * GIB, are="measured")

    assert [peaks.limit_mib(part) for part in ("0.50 allocated", "1.01 reserved", "middle")] == [2049, 8273, 6145]


def test_every_prediction_is_of_a_limit_with_a_name_of_its_own():
    """Of limits.toml, and of scripts that are there."""
    predicted = json.loads((PREDICTED_FIRST / "limits_predicted.json").read_text())
    names = [identifier(*limit) for limit in limits()]

    assert len(set(names)) == len(names)
    assert set(predicted) <= set(names)
    assert all((PREDICTED_FIRST / record["directory"] / record["argv"][0]).exists() for record in predicted.values())
    assert all(record["limit_mib"] % 2 for record in predicted.values())


def test_a_prediction_stands_beside_what_the_card_did():
    """Right with its size and its count of caught failures; and one that was not measured."""
    page = render_first_limits(
        [
            FirstLimit(name="a@middle", predicted=PREDICTED, measured=MEASURED),
            FirstLimit(name="b@middle", predicted=PREDICTED, measured=None),
            FirstLimit(name="c@middle", predicted=PREDICTED, measured=MEASURED | {"error": {"kind": "no result"}}),
        ]
    )
    (row,) = [line for line in page.splitlines() if line.startswith("| a@middle")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]

    assert cells[1:5] == ["1.001", "train.py:5, 2.00 MiB", "train.py:5, 2.00 MiB", "right"]
    assert cells[5:] == ["1", "1", "aten::mm, backward, step 3", "x:1:f"]
    assert "Not measured: b@middle, c@middle." in page
    assert "1 of 1 (100%) of those fail at the line where the card does." in page


def test_the_page_can_be_written_from_what_is_there():
    """Of every limit, measured or not."""
    limits_there = first_limits()
    page = render_first_limits(limits_there)

    assert all(limit.name in page for limit in limits_there)


def test_what_is_to_be_measured_names_scripts_limits_and_settings(tmp_path):
    """As measure_limits.py hands them to suite.py."""
    code = "import json, measure_limits as m; print(json.dumps(m.manifest(['nano_gpt', 'two_streams'])))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=PREDICTED_FIRST, capture_output=True, text=True, check=True
    )
    jobs = json.loads(answer.stdout)

    assert all((TRUTH / "scripts" / job["script"]).resolve().exists() for job in jobs)
    assert all(job["cap_gib"] * 1024 % 2 == 1 for job in jobs)


def test_a_run_that_leaves_nothing_has_its_line_too(tmp_path):
    """Here it is for want of a card."""
    job = {"id": "a", "script": "misc.py", "gib": 1, "cap_gib": 1}
    (tmp_path / "manifest.json").write_text(json.dumps([job]))
    suite = [sys.executable, TRUTH / "suite.py", tmp_path / "manifest.json", tmp_path / "out", "--one-file"]
    environment = {"CUDA_VISIBLE_DEVICES": "", "PATH": ""}
    subprocess.run(suite, env=environment, capture_output=True, check=True, timeout=120)
    (line,) = (tmp_path / "out" / "measured.jsonl").read_text().splitlines()

    assert json.loads(line)["id"] == "a"
    assert json.loads(line)["error"]["kind"] == "no result"
    assert [path.name for path in Path(tmp_path / "out").iterdir()] == ["measured.jsonl"]
