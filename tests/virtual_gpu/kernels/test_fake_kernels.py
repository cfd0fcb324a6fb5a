"""Operators of the card for which torch has no fake kernel, and library code that needs them."""

import pytest
import torch
from torch import nn

from ..cards import slugs

pytestmark = pytest.mark.torch


def test_comparisons(virtual_gpu):
    """Known tensors are compared; unknown ones are taken to be what they were checked for."""
    known = torch.ones(2, device="cuda")

    assert torch.equal(known, known.clone())
    assert not torch.allclose(known, known + 1)
    assert [] == slugs(virtual_gpu)
    assert torch.allclose(known, torch.randn(2, device="cuda"))
    assert ["values"] == slugs(virtual_gpu)


def test_padded_encoder_in_evaluation(virtual_gpu):
    """nn.TransformerEncoder runs without nested tensors."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).cuda().eval()
    mask = torch.zeros(2, 5, dtype=torch.bool).cuda()
    with torch.no_grad():
        out = encoder(torch.randn(2, 5, 16, device="cuda"), src_key_padding_mask=mask)

    assert (2, 5, 16) == tuple(out.shape)


def test_distributions(virtual_gpu):
    """Arguments of distributions are not checked, for their values are unknown."""
    normal = torch.distributions.Normal(torch.randn(3, device="cuda"), torch.ones(3, device="cuda"))

    assert normal.rsample().is_cuda
    assert (3,) == tuple(normal.log_prob(torch.randn(3, device="cuda")).shape)
    assert torch.distributions.kl_divergence(normal, normal).is_cuda


def test_data_parallel(virtual_gpu):
    """nn.DataParallel on one card runs its module on the whole batch."""
    model = nn.DataParallel(nn.Linear(4, 4).cuda())
    model(torch.ones(6, 4)).sum().backward()

    assert model.module.weight.grad.is_cuda


def test_pinned_factories(virtual_gpu):
    """A pinned buffer of the host is host memory, and copies reach it."""
    buffer = torch.empty(3, pin_memory=True)
    buffer.copy_(torch.full((3,), 2.0, device="cuda"), non_blocking=True)

    assert [2.0, 2.0, 2.0] == buffer.tolist()


def test_memory_history(virtual_gpu, tmp_path):
    """Scripts that record their own memory history run."""
    torch.cuda.memory._record_memory_history(max_entries=10)
    torch.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    torch.cuda.memory._record_memory_history(enabled=None)

    assert [] == torch.cuda.memory_snapshot()
    assert "native" == torch.cuda.get_allocator_backend()


def test_orthogonal_parametrization(virtual_gpu):
    """A library's check of its own result passes."""
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)).cuda()
    layer(torch.ones(2, 4, device="cuda")).sum().backward()

    assert layer.parametrizations.weight.original.grad.is_cuda


@pytest.mark.xfail(reason="CUDA graphs have no stand-in", strict=True)
def test_cuda_graphs(virtual_gpu):
    """A captured region runs once, at its capture."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.ones(3, device="cuda")


@pytest.mark.xfail(reason="nested tensors need symbolic shapes", strict=True)
def test_nested_tensors(virtual_gpu):
    """A jagged tensor holds its rows one behind the other."""
    rows = [torch.ones(2, 3, device="cuda"), torch.ones(1, 3, device="cuda")]

    assert (2, 3) == tuple(torch.nested.nested_tensor(rows, layout=torch.jagged)[0].shape)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rates: torch.distributions.Dirichlet(rates).rsample(),
        lambda rates: torch.distributions.Beta(rates, rates).rsample(),
        lambda rates: torch.distributions.Gamma(rates, rates).rsample(),
    ],
)
def test_draws_with_gradients(virtual_gpu, draw):
    """Draws of these distributions pass gradients on to their parameters."""
    rates = torch.ones(4, 3, device="cuda", requires_grad=True)
    draw(rates).sum().backward()

    assert rates.shape == rates.grad.shape


def test_draws(virtual_gpu):
    """Counts have the shape of their rates."""
    rates = torch.rand(4, 3, device="cuda")

    assert (4, 3) == tuple(torch.poisson(rates).shape) == tuple(torch.binomial(rates, rates).shape)
