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
