"""Optimizers of torchao in place of torch's."""

import sys

import pytest
import torch

from peaksight.errors import PlanError
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch

_CHANGES = (Change(kind="low-precision-state"),)


def test_without_torchao_there_is_no_such_plan(monkeypatch):
    """The way out is named."""
    monkeypatch.setitem(sys.modules, "torchao", None)
    monkeypatch.setitem(sys.modules, "torchao.optim", None)

    with Patches() as patches, pytest.raises(PlanError, match="torchao, which is not installed"):
        apply_changes(_CHANGES, patches)


def made(name, **options):
    """An optimizer as a script makes it under the plan, and what it is without."""
    with Patches() as patches:
        applied = apply_changes(_CHANGES, patches)
        optimizer = getattr(torch.optim, name)([torch.nn.Parameter(torch.zeros(8, 1024))], lr=0.1, **options)
    return optimizer, not applied.without_effect()


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_the_optimizer_is_that_of_torchao(name):
    """Made with the arguments of torch's; which kernels it has makes no difference."""
    library = pytest.importorskip("torchao.optim")

    optimizer, has_effect = made(name, fused=True, weight_decay=0.5, maximize=False)

    assert has_effect
    assert isinstance(optimizer, getattr(library, f"{name}8bit"))
    assert optimizer.param_groups[0]["weight_decay"] == 0.5
    assert getattr(torch.optim, name).__module__.startswith("torch.")


def test_what_torchao_does_not_do():
    """It would train otherwise."""
    pytest.importorskip("torchao.optim")

    with pytest.raises(PlanError, match="Adam8bit has no maximize, which Adam is made with"):
        made("Adam", maximize=True)
