"""Changes of a plan, made to torch on the CPU: what they do, that they do nothing else, and that they go away."""

import copy
from pathlib import Path

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

from peaksight.errors import PlanError
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.planning.absent_warnings import absent_warnings
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch


class Block(nn.Module):
    """Has statistics and random masks: what a recomputation must not disturb."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x + self.dropout(self.norm(self.linear(x)).relu())


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def trained(model, *changes):
    """Gradients and buffers of two passes under `changes`, and what of them did nothing."""
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        torch.manual_seed(1)
        for _ in range(2):
            model(torch.randn(16, 8)).square().mean().backward()
    tensors = [parameter.grad for parameter in model.parameters()] + list(model.buffers())
    return tensors, applied.without_effect()


def checkpointed(*names, **parameters):
    return Change(kind="checkpoint-modules", parameters={"modules": [f"Model.{name}" for name in names], **parameters})


@pytest.mark.parametrize("save", [[], ["matmuls"]])
def test_checkpointed_blocks_train_the_same_to_the_bit(save):
    """Gradients, running statistics and their counts; only the named blocks run twice."""
    torch.manual_seed(0)
    model = Model()
    other = copy.deepcopy(model)

    expected, _ = trained(model)
    found, without_effect = trained(other, checkpointed("blocks.0", "blocks.2", save=save))

    assert not without_effect
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert [block.calls for block in other.blocks] == [4, 2, 4]


def test_a_copy_of_a_checkpointed_model_has_its_own_weights():
    """As an average of weights: the flag is copied, not a method of the original."""
    model = Model().eval()
    with Patches() as patches:
        apply_changes([checkpointed("blocks.0")], patches)
        model(torch.randn(2, 8))
        average = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in average.parameters():
                parameter.zero_()
        x = torch.randn(2, 8)
        assert torch.equal(average(x), x)
        assert not torch.equal(model(x), x)


def test_modules_inside_of_a_wrapper_are_found():
    """The path begins at the class of the model, whatever holds it."""
    model = nn.Sequential(Model())

    trained(model, checkpointed("blocks.1"))

    assert [block.calls for block in model[0].blocks] == [2, 4, 2]


def test_what_names_nothing_is_without_effect():
    """A path of another model."""
    _, without_effect = trained(Model(), checkpointed("layers.0"))

    assert without_effect == ("checkpoint-modules",)


@pytest.mark.parametrize(
    ("implementation", "groups"),
    [("for-loop", (False, False)), ("fused", (True, False)), ("foreach", (False, True))],
)
def test_the_implementation_of_an_optimizer(implementation, groups):
    """Whatever the script asks for, AdamW by its parent class too; it is put back after."""
    change = Change(kind="optimizer-implementation", parameters={"implementation": implementation})
    with Patches() as patches:
        applied = apply_changes([change], patches)
        optimizer = torch.optim.AdamW(Model().parameters(), foreach=False)
        assert (optimizer.defaults["fused"], optimizer.defaults["foreach"]) == groups
        assert applied.without_effect() == ()
    assert torch.optim.AdamW(Model().parameters()).defaults["fused"] is None


def test_a_kind_that_does_not_exist():
    """Nothing is applied in silence."""
    with Patches() as patches, pytest.raises(PlanError, match="no change of the kind 'shrink'"):
        apply_changes([Change(kind="shrink")], patches)


def test_parameters_that_a_change_does_not_take():
    """The plan is to blame, not the script."""
    with Patches() as patches, pytest.raises(PlanError, match="does not take these parameters"):
        apply_changes([Change(kind="saved-on-host", parameters={"layers": 3})], patches)


def test_the_warnings_that_plans_exclude_are_those_of_torch():
    """In the words of the torch that is installed: a warning that was reworded would never be seen."""
    files = (torch.optim.lr_scheduler.__file__, torch.utils.checkpoint.__file__)
    texts = "".join(Path(file).read_text().replace('"\n', "") for file in files)

    changes = [Change(kind=kind) for kind in ("micro-batches", "checkpoint-modules")]
    assert all(text in texts for text in absent_warnings(changes))
