"""Backward passes and batches of a real training, as they are counted."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from peaksight.live.passes_followed import follow_passes
from peaksight.overlays.patches import Patches

pytestmark = pytest.mark.torch


def test_what_a_loop_makes():
    """A reentrant checkpoint's own pass is none; rows are those of the first tensor."""
    passes, rows = [], []
    data = TensorDataset(torch.ones(5, 4), torch.ones(5))
    layer = torch.nn.Linear(4, 4)
    before = torch.autograd.backward
    with Patches() as patches:
        follow_passes(patches, lambda: passes.append(1), rows.append)
        for x, _ in DataLoader(data, batch_size=2):
            checkpoint(layer, x.requires_grad_(), use_reentrant=True).sum().backward()

    assert ([1, 1, 1], [2, 2, 1]) == (passes, rows)
    assert torch.autograd.backward is before
