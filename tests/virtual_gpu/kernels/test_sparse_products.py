"""Graph networks that multiply by a sparse adjacency matrix."""

import pytest
import torch
from torch import nn

from ..cards import births_on, requested

pytestmark = pytest.mark.torch

NODES, EDGES, WIDTH = 100, 400, 16


def adjacency(*, coalesced=True):
    """A matrix on the host, and its number of elements."""
    indices = torch.stack([torch.arange(EDGES) % NODES, torch.arange(EDGES) // 4 % NODES])
    matrix = torch.sparse_coo_tensor(indices, torch.ones(EDGES), (NODES, NODES))
    return matrix.coalesce() if coalesced else matrix


@pytest.mark.parametrize(
    "multiply",
    [
        torch.sparse.mm,
        torch.mm,
        torch.matmul,
        lambda a, x: torch.addmm(x, a, x),
        lambda a, x: torch.sparse.addmm(x, a, x),
    ],
)
def test_products(virtual_gpu, multiply):
    """The result comes with row pointers, columns in 32 bits, and itself in another order."""
    matrix = adjacency().to("cuda")
    features = torch.randn(NODES, WIDTH, device="cuda", requires_grad=True)
    with births_on(virtual_gpu) as births:
        out = multiply(matrix, features)
    out.sum().backward()

    assert (NODES, WIDTH) == tuple(out.shape)
    assert 2 <= requested(births).count(NODES * WIDTH * 4)
    assert {(NODES + 1) * 4, matrix._nnz() * 4} <= set(requested(births))
    assert features.shape == features.grad.shape


def test_moved(virtual_gpu):
    """A matrix of the host has its indices and values on the card."""
    matrix = adjacency()
    with births_on(virtual_gpu) as births:
        moved = matrix.cuda()

    assert moved.is_cuda
    assert moved.is_coalesced()
    assert sorted((matrix._nnz() * 16, matrix._nnz() * 4)) == sorted(requested(births))


def test_buffer(virtual_gpu):
    """A module takes its matrix along."""

    class Propagation(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("matrix", adjacency())

    assert Propagation().cuda().matrix.is_cuda


def test_not_coalesced(virtual_gpu):
    """The elements are sorted first, as those of the transposed matrix of every backward pass are."""
    matrix = adjacency(coalesced=False).to("cuda")
    with births_on(virtual_gpu) as births:
        matrix @ torch.randn(NODES, WIDTH, device="cuda")

    assert EDGES * 8 in requested(births)


def test_vector(virtual_gpu):
    """A matrix times a vector is a vector."""
    assert (NODES,) == tuple((adjacency().cuda() @ torch.randn(NODES, device="cuda")).shape)


def test_a_dense_matrix_becomes_sparse(virtual_gpu):
    """Of what is known, as many elements as are there; then it is multiplied like any other."""
    dense = torch.eye(64).bool().cuda().float()
    with births_on(virtual_gpu) as births:
        matrix = dense.to_sparse()
    features = torch.randn(64, WIDTH, device="cuda", requires_grad=True)
    torch.sparse.mm(matrix, features).sum().backward()

    assert (64, True) == (matrix._nnz(), matrix.is_coalesced())
    assert [2 * 64 * 8, 64 * 4] == [part.numel() * part.itemsize for part in (matrix._indices(), matrix._values())]
    assert {2 * 64 * 8, 64 * 4} <= set(requested(births))
    assert features.grad.shape == features.shape


def test_a_drawn_matrix_becomes_sparse(virtual_gpu):
    """A tenth of its elements is there."""
    drawn = torch.rand(1000, 100, device="cuda") < 0.1

    assert pytest.approx(10_000, rel=0.05) == drawn.float().to_sparse()._nnz()


@pytest.mark.parametrize(
    ("normalise", "num_elements"),
    [
        (lambda a: 2 * a, EDGES),
        (lambda a: a / 2, EDGES),
        (lambda a: a * torch.ones((), device="cuda"), EDGES),
        (lambda a: torch.sparse.softmax(a, 1), EDGES),
        (lambda a: torch.sparse.sum(a, 0), EDGES),
    ],
)
def test_normalised(virtual_gpu, normalise, num_elements):
    """There are as many values as before, and no dense matrix."""
    matrix = adjacency(coalesced=False).to("cuda")
    with births_on(virtual_gpu) as births:
        normalised = normalise(matrix)

    assert num_elements == normalised._nnz()
    assert max(requested(births)) <= 2 * EDGES * 8


def test_degrees(virtual_gpu):
    """What a sum over columns leaves is a vector once it is dense, and the sum of all one number."""
    matrix = adjacency().to("cuda")

    assert (NODES,) == tuple(torch.sparse.sum(matrix, 1).to_dense().shape)
    assert () == tuple(torch.sparse.sum(matrix).shape)
