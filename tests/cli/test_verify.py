"""`peaksight verify` runs two scripts, and says whether they train the same model."""

import json
import subprocess

import pytest

from schemas import validated

pytestmark = pytest.mark.torch

SCRIPT = """
import sys
import threading
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = torch.randn(2, 8, 8)
for batch in data:
    parts = batch.chunk(2 if "parts" in sys.argv else 1)
    for part in parts:
        hidden = checkpoint(model[:2], part, use_reentrant=False) if "checkpoint" in sys.argv else model[:2](part)
        loss = model[2:](hidden).square().mean()
        (loss if "whole" in sys.argv else loss / len(parts)).backward()
        if "fails" in sys.argv:
            raise RuntimeError("the disk is full")
        if "hangs" in sys.argv:
            threading.Event().wait()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def verify(peaksight, tmp_path):
    """The exit code, and the certificate as JSON or the message."""
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(against, changed, *options):
        done = peaksight("verify", "--json", "-", *options, "--against", against, *changed.split())
        return done.returncode, validated(json.loads(done.stdout)) if done.stdout else done.stderr

    return run


def test_the_same_bits(verify):
    """Checkpointing computes the same twice."""
    code, certificate = verify("train.py", "train.py checkpoint")

    assert (0, "bitwise") == (code, certificate["verdict"])
    assert certificate["worst"] is None


def test_a_revision_with_the_same_code(verify, tmp_path):
    """Another file, and yet nothing was changed."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "before"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    code, message = verify("HEAD", "train.py")

    assert 2 == code
    assert "#same-command" in message


@pytest.mark.parametrize("changed, slug", [("train.py", "same-command"), ("train.py fails", "run-failed")])
def test_no_answer(verify, changed, slug):
    """Never the same, where nothing was compared."""
    code, message = verify("train.py", changed)

    assert 2 == code
    assert f"#{slug}" in message


def test_a_run_that_hangs(verify):
    """It is ended, and no answer given."""
    code, message = verify("train.py hangs", "train.py", "--timeout", "1")

    assert 2 == code
    assert "#run-timed-out" in message
