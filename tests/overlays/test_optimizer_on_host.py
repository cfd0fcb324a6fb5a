"""The state of an optimizer on the host between steps: GIVEN a run on the CPU, THEN the same numbers, bit by bit."""

import pytest
import torch
from torch import nn

from peaksight.gpus import find_card
from peaksight.gpus.room import room_on
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records import Phase, ScriptCommand
from peaksight.records.plan import Change
from peaksight.virtual_gpu import simulate_elsewhere

pytestmark = pytest.mark.torch

CHANGE = Change(kind="optimizer-on-host")
# 4 matrices of 16 MiB, with two moments each; the backward pass makes the peak.
SCRIPT = """
import torch
from torch import nn
net = nn.Sequential(*[nn.Linear(2048, 2048, bias=False) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(net.parameters(), fused=True)
for _ in range(4):
    net(torch.randn(8192, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def trained(*changes, make=torch.optim.AdamW, **options):
    """The weights after three steps, the tensors of the state before each, and which changes did nothing."""
    torch.manual_seed(0)
    net, seen = nn.Linear(8, 8), []
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        optimizer = make(net.parameters(), lr=0.1, **options)
        for _ in range(3):
            seen.append([t for s in optimizer.state.values() for t in s.values() if t.numel() > 1])
            net(torch.randn(4, 8)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return [p.detach() for p in net.parameters()], seen, applied.without_effect()


@pytest.mark.parametrize("make, options", [(torch.optim.AdamW, {}), (torch.optim.SGD, {"momentum": 0.9})])
def test_the_same_weights(make, options):
    """And the state is another copy after each step."""
    expected, stays, _ = trained(make=make, **options)
    found, moves, without_effect = trained(CHANGE, make=make, **options)

    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert all(a is b for a, b in zip(stays[1], stays[2], strict=True))
    assert all(a is not b for a, b in zip(moves[1], moves[2], strict=True)) and moves[2]
    assert without_effect == ()


def test_an_optimizer_without_state():
    """Has nothing to move, which a plan says."""
    assert trained(CHANGE, make=torch.optim.SGD)[2] == ("optimizer-on-host",)


def test_the_passes_have_its_memory(tmp_path):
    """Simulated, the state of 128 MiB is gone in the backward pass, and is there in the step."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command, room = ScriptCommand(target=str(tmp_path / "train.py")), room_on(find_card("t4"))

    (before,), (after,) = (
        simulate_elsewhere(command, room, max_failures=0, changes=changes) for changes in ((), (CHANGE,))
    )

    assert before.steps[2].peak_allocated_bytes - after.steps[2].peak_allocated_bytes == 2 * 4 * 2048 * 2048 * 4
    assert after.work[-1].seconds > before.work[-1].seconds
    moments = [a for a in after.allocations if a.phase is Phase.OPTIMIZER and a.requested_bytes == 2048 * 2048 * 4]
    assert len(moments) >= 8
