"""The pages of `make accuracy`, `make verdicts` and `make peers`, from small predictions."""

import json
from dataclasses import replace

from benchmarks.accuracy.differences import render_differences
from benchmarks.accuracy.first import render_first
from benchmarks.accuracy.goals import render_goals
from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import score
from benchmarks.accuracy.verdicts_page import Comparison, Verdict, render_verdicts
from benchmarks.accuracy.workloads import PREDICTED_FIRST, Workload, predicted_first
from benchmarks.scatter import render_scatter
from helpers import peak_of, report_of
from peaksight.units import GIB


def prediction_of(allocated_bytes, *, name="small", again=None, first=None):
    """A prediction of a workload that the GPU measured at 1000 bytes allocated, 2000 reserved, 5000 of the process."""
    measured = {"peak_allocated": 1000, "peak_reserved": 2000, "nvml_process": 5000, "live_at_peak": []}
    measured |= {"device": "NVIDIA H100", "torch": "2.11.0", "measured_on": "2026-11-28"}
    if again:
        measured["again"] = measured | again
    return Prediction(
        workload=Workload(name=name, words=("train.py",), measured=measured, first=first),
        report=report_of(peak=peak_of(allocated_bytes, reserved_bytes=2000, process_bytes=5000)),
        failure="",
        seconds=1.0,
    )


def cells(page, first):
    """The row of a Markdown table that starts with `first`."""
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {first}")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_a_goal_that_is_missed_says_by_how_much():
    """7 % where at most 5 % is the goal."""
    page = render_goals([score(prediction_of(1000)), score(prediction_of(1070, name="far"))])

    assert cells(page, "allocated: none over 5%")[1:] == ["7.00% (far)", "2.00% too much"]
    assert cells(page, "allocated: nine in ten within 2%")[1:] == ["50.0%", "40.0%"]
    assert cells(page, "reserved: none over 6%")[2] == "nothing"


def test_differences_stand_beside_those_of_the_card():
    """A known reason is told, an unknown one is said to be unknown, and what is near is left out."""
    far = prediction_of(1070, name="wav2vec2", again={"peak_allocated": 1020})
    page = render_differences([prediction_of(1005), far, prediction_of(900, name="strange")])

    assert cells(page, "wav2vec2") == ["wav2vec2", "h100-80gb", "allocated", "+7.00%", "+2.00%"]
    assert cells(page, "strange")[4] == "measured once"
    assert "- wav2vec2: it drops layers at random" in page
    assert "- strange: not explained yet." in page
    assert "small" not in page


def test_what_was_predicted_first_stays_beside_what_is_predicted_now():
    """10 % too high before it was measured, 2 % since."""
    first = {"predicted_allocated_bytes": 1100, "predicted_reserved_bytes": 2000}
    page = render_first([prediction_of(1020, first=first)])

    assert cells(page, "small")[3:5] == ["+10.00%", "+2.00%"]
    assert "- NVIDIA H100, torch 2.11.0, measured on 2026-11-28: 1 workloads, 0 of them right to the byte" in page


def test_every_workload_that_was_predicted_first_was_measured():
    """Scripts, arguments and cards of both records are the same."""
    measured = predicted_first()

    assert len(measured) == len(json.loads((PREDICTED_FIRST / "predicted.json").read_text())) >= 46
    assert all(list(w.words) == w.measured["argv"] and (w.directory / w.words[0]).exists() for w in measured)
    assert all(w.first["gpu"] == w.measured["device"] for w in measured)


def test_a_known_reason_is_that_of_every_card():
    """The name of the card is no part of the workload's."""
    far = prediction_of(1070, name="wav2vec2-h200")
    page = render_differences([replace(far, workload=replace(far.workload, gpu="h200"))])

    assert cells(page, "wav2vec2")[1] == "h200"
    assert "- wav2vec2: it drops layers at random" in page


def test_a_verdict_is_right_with_its_line_and_its_size():
    """Right, right but for the size, wrong, and no answer at all."""
    failing = Verdict(fits=False, line="train.py:5", size="2.00 MiB")
    comparison = Comparison(workload="a", limit_gib=1.0, measured=failing, predicted=failing)
    page = render_verdicts(
        [
            comparison,
            replace(comparison, workload="b", predicted=replace(failing, size="4.00 MiB")),
            replace(comparison, workload="c", predicted=Verdict(fits=True)),
            replace(comparison, workload="d", predicted=None),
        ]
    )

    assert [cells(page, name)[-1] for name in "abcd"] == ["right", "line right", "wrong", "wrong"]
    assert "2 of 4 (50%) limits that are too small are predicted to fail." in page


def test_the_picture_is_the_same_for_the_same_points():
    """No random names, no script, a dot a point."""
    points = {"allocated": [(GIB, 2 * GIB), (4 * GIB, 4 * GIB)]}
    picture = render_scatter(points)

    assert picture == render_scatter(points)
    assert picture.count("<circle") == 2
    assert "<script" not in picture
