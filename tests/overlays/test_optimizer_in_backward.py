"""Steps taken in the backward pass train as those after it."""

import copy

import pytest
import torch
from torch import nn

from peaksight.errors import UnsupportedError
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch
IN_BACKWARD = (Change(kind="optimizer-in-backward"),)


class Tied(nn.Module):
    """Its weight is used twice: the gradient is complete after both uses."""

    def __init__(self):
        super().__init__()
        self.embed, self.linear = nn.Embedding(16, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(self.embed(x)).relu() @ self.embed.weight.T


def trained(model, make, *, changes=(), after_backward=lambda model: None, passes=1):
    """`model` after three steps with a schedule, and the most gradients that were there at a step."""
    most = 0
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        optimizer = make(model)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        torch.manual_seed(1)
        for _ in range(3):
            for _ in range(passes):
                model(torch.randint(16, (4, 6))).square().mean().backward()
            after_backward(model)
            most = max(most, sum(parameter.grad is not None for parameter in model.parameters()))
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        assert not applied.without_effect()
    return model, optimizer, most


def two_groups(model):
    groups = [{"params": model.embed.parameters(), "lr": 0.1}, {"params": model.linear.parameters()}]
    return torch.optim.AdamW(groups, lr=0.01)


@pytest.mark.parametrize(
    "make",
    [
        two_groups,
        lambda model: torch.optim.AdamW(model.parameters(), lr=0.1, fused=True),
        lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        lambda model: torch.optim.Adafactor(model.parameters(), lr=0.1),
    ],
)
def test_the_same_parameters_and_state(make):
    """With a weight that is used twice, groups, and a schedule; no gradient is left for the step."""
    torch.manual_seed(0)
    model = Tied()
    expected, optimizer, num_all = trained(copy.deepcopy(model), make)
    found, other, num_left = trained(model, make, changes=IN_BACKWARD)

    assert (num_all, num_left) == (3, 0)
    torch.testing.assert_close(found.state_dict(), expected.state_dict())
    torch.testing.assert_close(other.state_dict()["state"], optimizer.state_dict()["state"])


def test_gradients_that_are_added_up():
    """The second pass would update a second time."""
    with pytest.raises(UnsupportedError, match="adds up the gradients of several backward passes"):
        trained(Tied(), two_groups, changes=IN_BACKWARD, passes=2)


def test_gradients_that_are_clipped():
    """Nothing is left to clip."""
    with pytest.raises(UnsupportedError, match="clip_grad_norm_"):
        trained(
            Tied(),
            two_groups,
            changes=IN_BACKWARD,
            after_backward=lambda model: nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        )


@pytest.mark.parametrize("enabled", [True, False])
def test_a_scaled_loss(enabled):
    """A scaler that is not enabled changes nothing."""
    model = Tied()
    scaler = torch.amp.GradScaler("cpu", enabled=enabled)
    with Patches() as patches:
        apply_changes(IN_BACKWARD, patches)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler.scale(model(torch.zeros(2, 3, dtype=torch.long)).mean()).backward()
        if enabled:
            with pytest.raises(UnsupportedError, match="GradScaler"):
                scaler.step(optimizer)
        else:
            scaler.step(optimizer)
