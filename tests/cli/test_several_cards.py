"""Runs on several cards: GIVEN a teacher on cuda:1, THEN the answer has both cards."""

import json
from pathlib import Path

import pytest

from peaksight.units import MIB

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "two_cards.py"
TWO_SMALL_CARDS = ("--gpu", "h100-80gb", "--gpus", "2", "--memory", "1542MiB")


def test_both_fit(peaksight):
    """GIVEN a small teacher, THEN the exit code is 0 and each card has its own peak."""
    done = peaksight("run", *TWO_SMALL_CARDS, "--json", "-", SCRIPT)
    report = json.loads(done.stdout)
    peaks = [card["peak"]["allocated_bytes"] for card in report["devices"]]

    assert (done.returncode, report["fits"]) == (0, True)
    assert [card["index"] for card in report["devices"]] == [0, 1]
    assert peaks[0] > peaks[1] > 2 * 256 * 1024 * 4
    assert report["device"] == 0
    assert report["peak"] == report["devices"][0]["peak"]


def test_the_second_does_not(peaksight, tmp_path):
    """GIVEN a teacher that is too large, THEN the failure is on cuda:1, and a saved run says the same."""
    done = peaksight("run", *TWO_SMALL_CARDS, "--json", "-", "--save", "run.capture", SCRIPT, "--width", 1 << 21)
    report = json.loads(done.stdout)
    again = peaksight("report", "--json", "-", tmp_path / "run.capture")
    page = peaksight("report", tmp_path / "run.capture")

    assert done.returncode == 1
    assert (report["fits"], report["device"], report["oom"]["device"]) == (False, 1, 1)
    assert "GPU 1 has a total capacity of 1.51 GiB" in report["oom"]["message"]
    assert [card["fits"] for card in report["devices"]] == [True, False]
    assert report["peak"]["allocated_bytes"] > 4096 * MIB
    assert json.loads(again.stdout) == report
    assert "on cuda:1; the NVIDIA H100 80GB HBM3 gives" in " ".join(page.stdout.split())


def test_one_card_has_no_second(peaksight):
    """GIVEN no --gpus, THEN cuda:1 fails as on a machine with one card."""
    done = peaksight("run", SCRIPT)

    assert done.returncode == 2
    assert "torch.AcceleratorError: CUDA error: invalid device ordinal" in done.stderr
    assert "with --gpus N. See docs/messages.md#too-few-gpus." in done.stderr
