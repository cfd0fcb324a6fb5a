"""Rows in chunks: the same training where rows are proved independent, and nothing where they are not."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.independent_rows import why_dependent
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch


class Of(nn.Module):
    """`function` of rows (10, 6, 8)."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Scan(nn.Module):
    """What a state-space layer does: projections, a convolution along the length, sums in chunks, a gate."""

    def __init__(self):
        super().__init__()
        self.project, self.conv, self.norm = nn.Linear(8, 16), nn.Conv1d(8, 8, 3, padding=1), nn.RMSNorm(8)

    def forward(self, x):
        gate, values = self.project(x).split(8, -1)
        values = functional.pad(functional.silu(self.conv(values.mT).mT), (0, 0, 0, 2)).unflatten(1, (-1, 4))
        ahead = torch.ones(4, 4, dtype=torch.bool).triu(1)
        kept = (values @ values.mT).masked_fill(ahead, 0.0) @ values
        states = torch.stack([kept[:, part].cumsum(1) + torch.zeros_like(kept[:, 0]) for part in range(2)], 1)
        return self.norm(states.flatten(1, 2)[:, : x.shape[1]].flip(1) * functional.silu(gate))


def rows():
    torch.manual_seed(0)
    return torch.randn(10, 6, 8, dtype=torch.double)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(-1) + x.mean((1, 2), keepdim=True),
        lambda x: x.transpose(0, 1).flip(0).transpose(0, 1),
        lambda x: torch.cat([x, 2 * x], 1)[:, 3:9],
        lambda x: functional.layer_norm(x.flatten(1), (48,)).view_as(x),
        lambda x: torch.bmm(x, x.mT) @ x + x.amax(1, keepdim=True),
        lambda x: x.new_zeros(x.shape) + x,
    ],
)
def test_independent_rows(function):
    """Each row of the result comes of one row of the input."""
    assert why_dependent(function, rows(), may_draw=False) == ""


@pytest.mark.parametrize(
    "function, why",
    [
        (lambda x: x - x.mean(0), "reduces over the rows"),
        (lambda x: x / x.max(), "reduces over the rows"),
        (lambda x: x.softmax(0), "along the rows"),
        (lambda x: x.flip(0), "along the rows"),
        (lambda x: x[1:], "along the rows"),
        (lambda x: x / len(x), "depends on how many rows"),
        (lambda x: x * torch.tensor(float(len(x))), "a tensor of numbers"),
        (lambda x: x + torch.arange(len(x)).view(-1, 1, 1), "from elsewhere"),
        (lambda x: x[torch.arange(len(x)).flip(0)], "no rule for"),
        (lambda x: torch.einsum("rtd,std->rsd", x, x), "elsewhere"),
        (lambda x: (x.flatten(1) @ x.flatten(1).T).unsqueeze(1), "product"),
        (lambda x: torch.cat([x, x]), "joins rows"),
        (lambda x: x.transpose(0, 1), "no row for each"),
        (lambda x: x.mean(1).sum(0, keepdim=True).expand(len(x), 8), "reduces over the rows"),
        (functional.dropout, "draws random numbers"),
        (nn.BatchNorm1d(6).double(), "changes what the module keeps"),
    ],
)
def test_rows_that_are_not_proved_independent(function, why):
    """Something mixes them, or counts them, or nobody knows."""
    assert why in why_dependent(function, rows(), may_draw=False)


def test_the_proof_leaves_no_trace():
    """Random numbers that it draws are put back, statistics are as before, casts of weights keep their gradients."""
    norm, linear, x = nn.BatchNorm1d(6).double(), nn.Linear(8, 8), rows()
    before = torch.get_rng_state()
    why_dependent(functional.dropout, x, may_draw=True)
    why_dependent(norm, x, may_draw=True)

    assert torch.equal(torch.get_rng_state(), before)
    assert int(norm.num_batches_tracked) == 0
    with torch.autocast("cpu", torch.bfloat16):
        why_dependent(linear, x.float(), may_draw=False)
        linear(x.float()).float().sum().backward()
    assert linear.weight.grad is not None


def trained(module, *, changes=()):
    """The loss, each gradient, and whether all changes had an effect."""
    model = nn.Sequential(nn.Linear(8, 8), module).double()
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        loss = model(rows()).square().mean()
        loss.backward()
    return [loss.detach(), *(each.grad for each in model.parameters())], not applied.without_effect()


def chunked(**about):
    return (Change(kind="row-chunks", parameters={"modules": ["Sequential.1"], "chunks": 4} | about),)


def test_the_same_loss_and_gradients():
    """Ten rows in chunks of three and one."""
    torch.manual_seed(1)
    expected, _ = trained(Scan())
    torch.manual_seed(1)
    found, has_effect = trained(Scan(), changes=chunked())

    assert has_effect
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("draws", [True, False])
def test_dropout_is_for_those_that_may_draw(draws):
    """A plan that says that masks may be others, and one that does not."""
    assert trained(nn.Dropout(), changes=chunked(draws=draws))[1] is draws


def test_what_mixes_rows_stays_as_it_is():
    """The numbers are those of all rows."""
    torch.manual_seed(1)
    expected, _ = trained(Of(lambda x: x - x.mean(0)))
    torch.manual_seed(1)
    found, has_effect = trained(Of(lambda x: x - x.mean(0)), changes=chunked())

    assert not has_effect
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
