"""The page of `make times`, from small measurements, and what calibration fits."""

import json
from math import exp, log

import pytest

from benchmarks.times.__main__ import page
from benchmarks.times.measure import HERE
from peaksight.virtual_gpu.timing.efficiencies import MEASURED_ON, measured_on

pytestmark = pytest.mark.torch


def measured(seconds):
    return {"seconds": seconds, "steps": [seconds] * 7, "card": "A card", "torch": "2.11.0", "date": "2026-11-28"}


def predicted(seconds):
    return {"predicted_seconds": seconds, "kernel_seconds": seconds / 2, "flops": 1e12, "bytes": 2e9, "kernels": 1000}


def test_page():
    """Errors of steps, and of the ratios between them."""
    steps = {"gpt2-b8": measured(0.1), "gpt2-b8-ckpt": measured(0.12)}
    text = page(steps, {"gpt2-b8": predicted(0.11), "gpt2-b8-ckpt": predicted(0.11)}, 7)

    assert "| gpt2-b8      |       100.0 |        110.0 |  +10% |      50% |  1.00 |        2 |   1,000 |" in text
    assert "| gpt2-b8 | checkpointing |     1.20 |      1.00 |  -17% |" in text
    assert "0 of 1 ratios are within 15 %" in text
    assert "fitted to 7 microbenchmarks" in text


def test_search_finds_the_smallest_error():
    """From far away."""
    calibrate = pytest.importorskip("benchmarks.times.calibrate")

    def error(place):
        return (place[0] - log(3e-6)) ** 2 + (place[1] - log(0.7)) ** 2

    assert list(map(exp, calibrate.search(error, [0.0, 0.0]))) == pytest.approx([3e-6, 0.7], rel=2e-3)


@pytest.mark.parametrize("card", MEASURED_ON)
def test_efficiencies_are_of_the_card_that_was_measured(card):
    """The files that are shipped are fitted to the microbenchmarks that are kept."""
    machine = json.loads((HERE / "measured" / card / "micro.json").read_text())["machine"]
    fitted = measured_on(card)

    assert (fitted.card, fitted.torch, fitted.date) == (machine["card"], machine["torch"], machine["date"])
