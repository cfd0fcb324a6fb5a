"""Workspaces of cuSOLVER, as measured for float32 (torch 2.11+cu130, 2026-11-28)."""

import pytest
import torch

from peaksight.virtual_gpu.kernels.decompositions import xsyev_batched_bytes

from ..cards import events_on, slugs

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("n", "batch", "measured_bytes"),
    [(9, 960, 279_114_496), (19, 960, 311_792_896), (32, 960, 357_719_296), (5, 1, 278_168), (5, 2, 555_952),
     (4, 100, 27_462_704)],
)  # fmt: skip
def test_eigenvalues_of_a_batch(n, batch, measured_bytes):
    """An H100 (benchmarks/kernels) and an H200 (benchmarks/operators) took these bytes."""
    assert measured_bytes == xsyev_batched_bytes(n, batch)


@pytest.mark.parametrize(("batch", "n", "workspace"), [(8, 64, 29_000), (96, 33, 16_848)])
def test_eigenvalues_one_by_one(virtual_gpu, batch, n, workspace):
    """The same workspace is taken and given back for each matrix."""
    given = torch.empty(batch, n, n, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.eigh(given)

    assert [4 * batch, *[workspace, -workspace] * batch, 1, -1, -4 * batch] == events[2:]


def test_eigenvalues_of_a_large_matrix_are_listed(virtual_gpu):
    """Another algorithm, whose workspace has no rule."""
    torch.linalg.eigh(torch.empty(600, 600, device="cuda"))

    assert "linalg-workspace" in slugs(virtual_gpu)


@pytest.mark.parametrize(
    ("batch", "n", "vectors", "products"),
    [(1, 300, 3_326_080, 527_360), (1, 1024, 6_291_584, 1_639_424), (4, 513, 4_198_528, 854_528),
     (8, 256, 3_145_856, 459_776)],
)  # fmt: skip
def test_qr(virtual_gpu, batch, n, vectors, products):
    """Householder vectors, then their products, one matrix after the other."""
    given = torch.empty(batch, n, n, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.qr(given)

    one_by_one = [4, *[vectors, -vectors] * batch, -4, 4, *[products, -products] * batch, -4]
    assert [4 * n * batch, *one_by_one, -4 * n * batch] == events[2:]


def test_qr_of_a_batch(virtual_gpu):
    """The vectors come from cuBLAS, whose handle takes its workspace of 32 MiB at its first use."""
    given = torch.empty(96, 33, 33, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.qr(given)

    assert [12_672, 768, 768, 32 << 20, -768, -768, 4, 136_576, -136_576] == events[2:11]


@pytest.mark.parametrize(
    ("batch", "n", "workspace", "within"),
    [(960, 9, 3968, 0), (96, 33, 29_568, 200), (8, 64, 53_632, 200), (8, 256, 596_096, 0), (1, 300, 808_960, 800),
     (4, 513, 2_255_616, 2200), (1, 1024, 8_675_456, 0)],
)  # fmt: skip
def test_singular_values(virtual_gpu, batch, n, workspace, within):
    """A copy of the matrices and a workspace that does not depend on how many they are."""
    given = torch.empty(batch, n, n, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.svd(given)

    assert [4 * batch, 4 * given.numel()] == events[3:5]
    assert 0 <= events[5] - workspace <= within


def test_cholesky_of_a_batch(virtual_gpu):
    """An address for each matrix."""
    given = torch.empty(96, 33, 33, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.cholesky_ex(given)

    assert [4 * given.numel(), 384, 768, -768] == events


def test_double_precision_is_listed(virtual_gpu):
    """Only float32 was measured."""
    torch.linalg.qr(torch.empty(8, 8, dtype=torch.float64, device="cuda"))

    assert "linalg-workspace" in slugs(virtual_gpu)
