"""Predicted peaks against those of an H100 80GB with torch 2.11.0+cu130: a fast part of `make accuracy`."""

import pytest

from benchmarks.accuracy.predictions import predict
from benchmarks.accuracy.scores import score
from benchmarks.accuracy.workloads import workloads
from peaksight.units import MIB

pytestmark = [pytest.mark.torch, pytest.mark.models, pytest.mark.slow]

NAMES = {
    "bert-frozen",
    "gpt2-b8",
    "resnet50-b32",
    "t5-base-ckpt",
    "trainer-gpt2",
    "unet3d",
    "vit_b-b64-bf16-ckpt",
}


@pytest.mark.parametrize("workload", [w for w in workloads() if w.name in NAMES], ids=lambda workload: workload.name)
def test_peaks_are_the_measured_ones(workload):
    """Allocated within 1 %, reserved within 5 %, the rest of the process within 8 MiB, lines of 95 % of the bytes."""
    prediction = predict(workload)

    assert prediction.failure == ""
    errors = score(prediction)
    assert errors.allocated_error == pytest.approx(0, abs=0.01)
    assert errors.reserved_error == pytest.approx(0, abs=0.05)
    assert errors.outside_error_bytes == pytest.approx(0, abs=8 * MIB)
    assert errors.line_share is None or errors.line_share >= 0.95
