"""Gradients of DistributedDataParallel as views of its buckets."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch


@pytest.fixture
def group():
    """This process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_gradients_share_the_memory_of_a_bucket(group):
    """The same gradients, one behind the other in one block."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    x = torch.randn(2, 4)
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    with Patches() as patches:
        applied = apply_changes([Change(kind="bucket-views")], patches)
        parallel = DistributedDataParallel(model)
    parallel(x).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]

    assert not applied.without_effect()
    assert all(torch.equal(a, b) for a, b in zip(gradients, expected, strict=True))
    assert len({gradient.untyped_storage().data_ptr() for gradient in gradients}) == 1
