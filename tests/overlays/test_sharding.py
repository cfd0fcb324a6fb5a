"""Sharding by a plan: two processes train what one did."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch

TRAINING = """
import os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

def train():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(24, 6), torch.randn(24, 6))
    sizes = []
    for x, y in DataLoader(data, 8, shuffle=True):
        sizes.append(len(x))
        nn.functional.mse_loss(model(x), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer, sizes

alone, _, whole = train()
paths = ["Sequential.0", "Sequential.1", "Sequential.2", "Sequential"]
with Patches() as patches:
    change = Change(kind="sharding", parameters={"modules": paths, "loaders": [0]})
    applied = apply_changes([change], patches)
    model, optimizer, parts = train()
assert not applied.without_effect()
assert [2 * part for part in parts] == whole == [8, 8, 8]
held = sum(state["exp_avg"].to_local().numel() for state in optimizer.state.values())
assert 2 * held == sum(parameter.numel() for parameter in alone.parameters()), held
for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
    torch.testing.assert_close(ours.full_tensor(), theirs)
print("the same")
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_train_what_one_did(tmp_path):
    """Each with half of the state and of every batch, to rounding."""
    script = tmp_path / "train.py"
    script.write_text(TRAINING)

    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*launcher, script], capture_output=True, text=True, check=False)

    assert ["the same"] * 2 == re.findall("the same", done.stdout), done.stderr  # maybe in one line
