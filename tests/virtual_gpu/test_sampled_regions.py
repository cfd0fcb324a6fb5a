"""Detectors of torchvision: how many of the regions that they train on show objects."""

import pytest
import torch

pytestmark = [pytest.mark.torch, pytest.mark.models]


def test_regions_that_show_objects(virtual_gpu):
    """A quarter of 512 at most, of which alone masks are made; the others are background."""
    roi_heads = pytest.importorskip("torchvision.models.detection.roi_heads")
    heads = roi_heads.RoIHeads(None, None, None, 0.5, 0.5, 512, 0.25, None, 0.05, 0.5, 100)
    proposals = [torch.rand(2000, 4, device="cuda")]
    targets = [{"boxes": torch.rand(6, 4, device="cuda"), "labels": torch.ones(6, dtype=torch.int64, device="cuda")}]
    regions, _, labels, _ = heads.select_training_samples(proposals, targets)

    assert 512 == len(regions[0]) == len(labels[0])
    assert 128 == len(torch.where(labels[0] > 0)[0])
