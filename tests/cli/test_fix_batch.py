"""`fix --sweep`, `--vary`: GIVEN a script with a flag WHEN other values are asked for THEN each is simulated."""

import json

import pytest

from helpers_commands import peaksight
from schemas import validated

pytestmark = pytest.mark.torch

SCRIPT = """
import argparse
import torch
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--accum", type=int, default=1)
args = parser.parse_args()
model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4 * args.accum):
    model(torch.randn(args.batch * 1024, 64, device="cuda")).square().mean().backward()
    if (step + 1) % args.accum == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def fix(tmp_path, *words):
    """Of the script on a small card."""
    (tmp_path / "train.py").write_text(SCRIPT)
    return peaksight("fix", "--gpu", "t4", "--memory", "1GiB", *words, "train.py", cwd=tmp_path)


def test_a_sweep(tmp_path):
    """A row for each value; the exit code says that one fits."""
    done = fix(tmp_path, "--sweep", "batch=2,80", "--json", "-")

    found = validated(json.loads(done.stdout))
    assert [(row["value"], row["tried"]["fits"]) for row in found["rows"]] == [("2", True), ("80", False)]
    assert [row["tried"]["outcome"]["samples"] for row in found["rows"]] == [2048, 81920]
    assert found["best"]["value"] == "2"
    assert done.returncode == 0


def test_flags_with_the_same_samples(tmp_path):
    """One that changes what a step sees is no plan, however small."""
    done = fix(tmp_path, "--memory", "500MiB", "--candidates", "2", "--vary", "--batch 4,4 --accum 2,1", "--json", "-")

    tried = {each["candidate"]["title"]: each for each in json.loads(done.stdout)["tried"]}
    assert tried["--batch 4 --accum 2"]["fits"]
    assert tried["--batch 4 --accum 1"]["verdict"] == "a step would see 4096 samples in place of 8192"


def test_a_flag_that_the_script_does_not_have(tmp_path):
    """One sentence, with what the script said."""
    done = fix(tmp_path, "--sweep", "bach=2")

    assert done.returncode == 2
    assert "The script does not take --bach 2: unrecognized arguments: --bach 2." in done.stderr


def test_two_questions(tmp_path):
    """Are asked one after the other."""
    done = fix(tmp_path, "--sweep", "batch=2", "--max-batch", "--batch")

    assert done.returncode == 2
    assert "Can't answer two questions at once" in done.stderr


LOADER = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(8))).cuda()
optimizer = torch.optim.Adam(model.parameters(), fused=True)
data = TensorDataset(torch.randn(64, 1024))
for (x,) in DataLoader(data, 16):
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_on_more_cards(tmp_path):
    """A plain loop under FSDP2: parameters, gradients and state are divided, and the samples of a step stay."""
    (tmp_path / "train.py").write_text(LOADER)
    options = ["--gpu", "t4", "--memory", "280MiB", "--candidates", "1", "--json", "-"]
    done = peaksight("fix", *options, "train.py", cwd=tmp_path)

    found = validated(json.loads(done.stdout))
    assert found["best"] is None
    (two,) = found["on_more_cards"]
    assert [two["candidate"]["ranks"], two["outcome"]["samples"]] == [2, 8]
    assert two["outcome"]["allocated_bytes"] < 0.75 * found["original"]["outcome"]["allocated_bytes"]
    assert two["fits"]
