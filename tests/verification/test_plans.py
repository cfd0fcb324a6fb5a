"""A plan verified: the script as it is against itself under the plan."""

import json

import pytest

from helpers_commands import peaksight

pytestmark = pytest.mark.torch

SCRIPT = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.dropout = nn.Linear(16, 16), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.dropout(self.linear(x).relu())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(3):
    net(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def verified(folder, *changes):
    """The exit code and the certificate, or the message where there is none."""
    (folder / "train.py").write_text(SCRIPT)
    plan = {"schema": "peaksight.plan/1", "argv": ["train.py"], "changes": changes}
    plan |= dict.fromkeys(("sources", "peaksight", "torch", "gpu"), "")
    (folder / "plan.json").write_text(json.dumps(plan))
    words = ["verify", "--plan", "plan.json", "--steps", "2", "--json", "-", "train.py"]
    done = peaksight(*words, cwd=folder)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def test_checkpointed_blocks_are_bitwise_the_same(tmp_path):
    """With dropout active, and two regions of which the certificate knows."""
    modules = {"modules": ["Net.blocks.0", "Net.blocks.1"]}

    code, certificate = verified(tmp_path, {"kind": "checkpoint-modules", "parameters": modules})

    assert (code, certificate["verdict"]) == (0, "bitwise")


def test_a_plan_that_changes_nothing_here_is_not_verified(tmp_path):
    """Nothing is saved on a card on a machine without one."""
    code, message = verified(tmp_path, {"kind": "saved-on-host"})

    assert code == 2
    assert "nothing that the plan changes did anything" in message
