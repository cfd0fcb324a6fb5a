"""Models in bfloat16 from their first call on: as a person makes them, for optimizers that have the weights already."""

import pytest
import torch
from torch import nn

from peaksight.gpus import find_card
from peaksight.gpus.room import room_on
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records import ScriptCommand
from peaksight.records.plan import Change
from peaksight.virtual_gpu import simulate_elsewhere

pytestmark = pytest.mark.torch

CHANGE = Change(kind="bfloat16-weights")
SCRIPT = """
import torch
from torch import nn
net = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(net.parameters(), fused=True)
for _ in range(4):
    net(torch.randn(4096, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


class Scaled(nn.Module):
    """Takes numbers, whole ones and a dict."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x, index, *, more):
        assert index.dtype == torch.int64 and more["scale"].dtype == x.dtype
        return self.layer(x[index]) * more["scale"]


def trained(dtype, *changes):
    """The weights after three steps of a model that its script makes `dtype`, the optimizer, and what did nothing."""
    torch.manual_seed(0)
    model = Scaled().to(dtype)
    x, index = torch.randn(4, 8), torch.tensor([1, 0, 3])
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(3):
            inputs = x if changes else x.to(dtype)
            scale = torch.full((), 2.0) if changes else torch.full((), 2.0, dtype=dtype)
            model(inputs, index, more={"scale": scale}).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return list(model.parameters()), optimizer, applied.without_effect()


def test_as_a_person_does_it():
    """The same weights as with `model.to(torch.bfloat16)` and cast inputs; the optimizer's state is bfloat16 too."""
    expected, _, _ = trained(torch.bfloat16)
    found, optimizer, without_effect = trained(torch.float32, CHANGE)

    assert all(a.dtype == torch.bfloat16 and torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert {s["exp_avg"].dtype for s in optimizer.state.values()} == {torch.bfloat16}
    assert without_effect == ()


def test_a_model_that_is_so_already():
    """Nothing is changed, which a plan says."""
    assert trained(torch.bfloat16, CHANGE)[2] == ("bfloat16-weights",)


def test_half_of_everything(tmp_path):
    """Simulated: weights, gradients, state, and what is saved of them."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command, room = ScriptCommand(target=str(tmp_path / "train.py")), room_on(find_card("rtx-3090"))

    (before,), (after,) = (
        simulate_elsewhere(command, room, max_failures=0, changes=changes) for changes in ((), (CHANGE,))
    )

    # The input is drawn in float32 and is there beside its copy.
    assert 0.5 < after.steps[2].peak_allocated_bytes / before.steps[2].peak_allocated_bytes < 0.6
    assert {row.state_dtype for row in after.optimizers} == {"bfloat16"}
