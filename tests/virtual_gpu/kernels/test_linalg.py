"""The workspace of batched eigh."""

import pytest
import torch

from peaksight.records import Role
from peaksight.virtual_gpu.kernels.linalg import xsyev_batched_bytes

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("n", "measured_bytes"), [(9, 279_114_496), (19, 311_792_896), (32, 357_719_296)])
def test_workspace_is_the_measured_one(n, measured_bytes):
    """An H100 (torch 2.11+cu130, 2026-11-28) took these bytes for 960 float32 matrices."""
    predicted_bytes = xsyev_batched_bytes(n, 960)

    assert predicted_bytes == measured_bytes


def test_small_batches_are_priced(virtual_gpu):
    """eigh of 960 matrices of 9 x 9 holds a copy of them, the infos and its workspace for the length of the call."""
    matrices = torch.randn(960, 9, 9, device="cuda")
    torch.linalg.eigh(matrices)

    sizes = [birth.requested_bytes for birth in virtual_gpu.ledger.births if birth.role is Role.WORKSPACE]

    assert sizes == [311_040, 3_840, 279_114_496, 1]
    assert not virtual_gpu.approximations.records()


def test_large_matrices_are_listed(virtual_gpu):
    """No rule gives the workspace of one large matrix: it is listed as unknown."""
    torch.linalg.eigh(torch.randn(300, 300, device="cuda"))

    assert [record.slug for record in virtual_gpu.approximations.records()] == ["linalg-workspace"]
