"""The EEG detector: what fails, why, and which of its remedies do nothing, found by the rules alone."""

import json
from pathlib import Path

import pytest

from helpers_commands import peaksight
from peaksight.units import MIB
from systems.running import SYSTEMS, finding, refuted, report_on, rules

pytestmark = [pytest.mark.models, pytest.mark.slow]

SYSTEM = "eeg_bimamba"
ON_ITS_CARD = ("--gpu", "rtx-4090", "--torch", "2.11+cu130")
MATRICES_BYTES = 8 * 171 * 4 * 256 * 256 * 4  # of the pairs' scan, 1,368 MiB
EIGH_BYTES = 2_494_372_352  # of 7680 x 19 x 19 as a card took it with torch 2.11+cu130
NOTE = """# Why it does not fit
On an RTX 4090 (24GB).
- Memory used: 14.44 GB allocated + 1.74 GB reserved = 16.18 GB
- Trying to allocate 1.34 GB more
- Only 5.35 GB free

A batch (8, 19, 15360) = 94 MB; behind the first convolution (8, 64, 15360) = 7.9 MB.
"""


def report_of(variant):
    return report_on(SYSTEM, "--variant", variant, "--steps", "2", options=ON_ITS_CARD)


def line_of(text):
    lines = (SYSTEMS / SYSTEM / "train.py").read_text(encoding="utf-8").splitlines()
    return f"train.py:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def test_what_fails_is_a_matrix_of_the_scan_of_pairs():
    oom = report_of("before")["oom"]

    assert (oom["requested_bytes"], oom["at"]) == (MATRICES_BYTES, line_of("queries @ keys.mT * kept"))


def test_saved_activations_in_float32_come_first():
    report = report_of("before")

    assert rules(report)[0] == "activations"
    assert finding(report, "activations")["bytes"] > 0.85 * report["peak"]["allocated_bytes"]
    assert "float32[5472, 256, 256]" in finding(report, "activations")["evidence"][0]


def test_the_workspace_of_eigh_is_named_with_its_size_and_decides_nothing():
    report = report_of("before")
    held = [each["bytes"] for each in report["live_at_peak"] if each["op"] == "aten::_linalg_eigh"]

    assert max(held) == EIGH_BYTES
    assert "the largest, 2.32 GiB of aten::_linalg_eigh" in refuted(report)["workspaces"]


def test_it_comes_first_once_nothing_else_is_large_with_the_release_that_decides():
    report = report_of("fixed")

    assert report["fits"]
    assert any("2.11" in sentence for sentence in finding(report, "workspaces")["evidence"])
    assert report["peak"]["allocated_bytes"] < report_of("before")["peak"]["allocated_bytes"] / 8


def test_the_interval_does_nothing_where_there_is_one():
    interval = finding(report_of("note"), "interval-after-work")

    assert (interval["without_effect"], interval["bytes"]) == (True, 0)
    assert interval["at"] == line_of("torch.linalg.eigh")
    assert "interval-after-work" in refuted(report_of("before"))  # its interval is one


def test_checkpointing_the_model_saves_nothing_beside_the_smaller_batch():
    note, before = report_of("note"), report_of("before")

    assert rules(note)[0] == "checkpointing-one-region"
    assert finding(note, "checkpointing-one-region")["without_effect"]
    assert note["peak"]["allocated_bytes"] == pytest.approx(6 / 8 * before["peak"]["allocated_bytes"], rel=0.01)


@pytest.mark.parametrize("variant", ["before", "note"])
def test_22_million_parameters_are_never_used(variant):
    assert finding(report_of(variant), "parameters-unused")["bytes"] == pytest.approx(4 * 22.4e6, rel=0.001)


def test_repeated_eigenvalues_have_no_certificate():
    words = "--scale small --threshold 0.5 --steps 1"
    against = f"train.py {words}"
    command = ["verify", "--steps", "1", "--against", against, "train.py", *words.split(), "--variant", "fixed"]
    done = peaksight(*command, cwd=SYSTEMS / SYSTEM)

    assert done.returncode == 2
    assert "that is not finite" in done.stderr


def test_figures_that_cannot_be_true_together_are_read(tmp_path):
    Path(tmp_path, "note.md").write_text(NOTE)
    done = peaksight("read", "--json", "-", "note.md", cwd=tmp_path)
    wrong = [check["text"] for check in json.loads(done.stdout)["checks"] if not check["holds"]]

    for part in ("(8, 19, 15360) = 94 MB: wrong", "elements taken for bytes", "not a plain shortage", "< 24 GB"):
        assert any(part in text for text in wrong), wrong
    assert MATRICES_BYTES == 1368 * MIB
