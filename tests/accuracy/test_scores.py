"""The comparison itself: errors, shares of lines, and the page."""

import pytest

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import score
from benchmarks.accuracy.workloads import Workload
from helpers import holder_of, peak_of, report_of
from peaksight.records import Category, Phase


def prediction_of(*holders, allocated_bytes=110, reserved_bytes=180, process_bytes=450, live_at_peak=()):
    """A prediction of a workload that the GPU measured at 100 bytes allocated, 200 reserved, 500 of the process."""
    measured = {"peak_allocated": 100, "peak_reserved": 200, "nvml_process": 500, "live_at_peak": live_at_peak}
    return Prediction(
        workload=Workload(name="small", words=("train.py",), measured=measured),
        report=report_of(
            *holders, peak=peak_of(allocated_bytes, reserved_bytes=reserved_bytes, process_bytes=process_bytes)
        ),
        failure="",
        seconds=1.0,
    )


def test_errors_are_signed():
    """Too high is positive, too low negative."""
    errors = score(prediction_of())

    assert pytest.approx(0.1) == errors.allocated_error
    assert pytest.approx(-0.1) == errors.reserved_error
    assert pytest.approx(-0.1) == errors.process_error


def test_the_process_without_its_reserved_memory():
    """270 of 450 bytes predicted, 300 of 500 measured."""
    assert score(prediction_of()).outside_error_bytes == -30


def test_bytes_on_the_wrong_line_do_not_count():
    """70 of 100 measured bytes are on their line, though 80 are predicted there."""
    measured = [[70, 1, "torch/nn/functional.py:1:f < train.py:5:<module>"], [30, 1, "train.py:9:<module>"]]
    holders = [
        holder_of(80, Category.ACTIVATION, source="train.py:5"),
        holder_of(20, Category.INPUT, source="train.py:2"),
    ]

    assert pytest.approx(0.7) == score(prediction_of(*holders, live_at_peak=measured)).line_share


def test_the_backward_has_no_lines():
    """The card does not say which line of the forward a gradient belongs to, so predicting one gains nothing."""
    gradient = holder_of(50, Category.GRADIENT, source="train.py:5", phase=Phase.BACKWARD)

    assert score(prediction_of(gradient, live_at_peak=[[50, 1, ""]])).line_share is None
    assert score(prediction_of(gradient, live_at_peak=[[50, 1, "train.py:5:<module>"]])).line_share == 0
