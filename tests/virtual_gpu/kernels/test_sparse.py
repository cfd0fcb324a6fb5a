"""Sparse gradients of embeddings: an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch
from torch import nn

from ..cards import births_on, events_on, requested

pytestmark = pytest.mark.torch

ROWS, COLUMNS = 300, 64
VALUES, INDICES = 4 * ROWS * COLUMNS, 8 * ROWS


def embedding():
    """A layer whose gradients are sparse, and indices of it that all differ."""
    return nn.Embedding(5000, COLUMNS, sparse=True).cuda(), torch.arange(ROWS).cuda()


def gradient(layer, indices):
    """The gradient of the sum of the rows at `indices`."""
    layer(indices).sum().backward()
    return layer.weight.grad


def test_a_gradient_keeps_its_rows(virtual_gpu):
    """The engine clones it: a block of indices and one of values."""
    layer, indices = embedding()
    with births_on(virtual_gpu) as births:
        kept = gradient(layer, indices)

    assert ROWS == kept._nnz()
    assert [INDICES, VALUES] == requested(births)[-2:]


def test_a_table_used_twice(virtual_gpu):
    """The engine joins the rows of both gradients."""
    layer, indices = embedding()
    (layer(indices) + layer(indices)).sum().backward()

    assert 2 * ROWS == layer.weight.grad._nnz()


def test_merging_equal_rows(virtual_gpu):
    """Two vectors of indices beside the result."""
    layer, indices = embedding()
    sparse = gradient(layer, indices)
    with events_on(virtual_gpu) as events:
        kept = sparse.coalesce()

    assert [INDICES, INDICES, INDICES, VALUES, -INDICES, -INDICES] == events
    assert kept.is_coalesced()


def test_values_at_the_rows_of_a_gradient(virtual_gpu):
    """As SparseAdam takes them from its state."""
    layer, indices = embedding()
    sparse, state = gradient(layer, indices).coalesce(), torch.zeros(5000, COLUMNS, device="cuda")
    with events_on(virtual_gpu) as events:
        _kept = state.sparse_mask(sparse)

    assert [4, INDICES, VALUES, VALUES, -VALUES, -4] == events


@pytest.mark.parametrize("kind", [torch.optim.SparseAdam, torch.optim.SGD, torch.optim.Adagrad])
def test_optimizers(virtual_gpu, kind):
    """Those that take sparse gradients run."""
    layer, indices = embedding()
    optimizer = kind(layer.parameters(), lr=0.1)
    gradient(layer, indices)
    optimizer.step()

    assert (5000, COLUMNS) == tuple(layer.weight.shape)


def test_a_dense_copy(virtual_gpu):
    """As large as the table."""
    layer, indices = embedding()

    assert layer.weight.shape == gradient(layer, indices).to_dense().shape


def test_first_gradient_is_taken_over(virtual_gpu):
    """An H100 takes the rows of the gradient once: they become the leaf's own."""
    bag = torch.nn.EmbeddingBag(4000, 64, sparse=True, mode="sum").cuda()
    out = bag(torch.ones(128, 20, dtype=torch.int64, device="cuda"))
    gradient = torch.ones_like(out)
    with births_on(virtual_gpu) as births:
        out.backward(gradient)

    assert requested(births).count(128 * 20 * 64 * 4) == 1
