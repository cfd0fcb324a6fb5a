"""What a script does after its training: GIVEN a loop that ends at the steady state, THEN the report has it, too."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch

TRAINING = """\
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range({steps}):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
EVALUATION = """\
with torch.no_grad():
    model(torch.randn(100_000, 512, device="cuda"))
"""
EVALUATION_BYTES = 100_000 * 512 * 4


def run(tmp_path, steps, after):
    """The exit code, the report and what was said of a training of `steps` and what comes `after` it."""
    (tmp_path / "train.py").write_text(TRAINING.format(steps=steps) + after)
    command = [sys.executable, "-m", "peaksight", "run", "--gpu", "h100-80gb", "--json", "-", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(done.stdout), done.stderr


def test_an_evaluation_after_the_last_step(tmp_path):
    """GIVEN three steps, THEN the evaluation is the peak, and no line is left out."""
    code, report, _ = run(tmp_path, 3, EVALUATION)

    assert (code, report["finished"], report["not_reached"]) == (0, "script", [])
    assert report["peak"]["allocated_bytes"] > EVALUATION_BYTES
    assert report["peak"]["phase"] == "forward"


def test_a_long_training_is_stopped_before(tmp_path):
    """GIVEN a thousand steps, THEN the evaluation is named as not reached."""
    code, report, _ = run(tmp_path, 1000, EVALUATION)

    assert (code, report["finished"]) == (0, "steady")
    assert report["not_reached"]
    assert report["peak"]["allocated_bytes"] < EVALUATION_BYTES


def test_a_failure_after_the_training(tmp_path):
    """GIVEN a script that fails there, THEN its training still has an answer, which says so."""
    code, report, said = run(tmp_path, 3, "raise ValueError('no metric')\n")

    assert "ValueError: no metric" in said
    assert (code, report["fits"], report["finished"], report["script_exit"]) == (0, True, "steady", 0)
    assert "after-training" in [note["slug"] for note in report["not_simulated"]]
