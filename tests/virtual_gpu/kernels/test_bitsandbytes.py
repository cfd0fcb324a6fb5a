"""bitsandbytes on the card: what its Python allocates, around a library in C that is not there."""

from importlib.util import find_spec

import pytest
import torch
from torch import nn

from peaksight.units import MIB

from ..cards import peak_of, slugs

pytestmark = [
    pytest.mark.torch,
    pytest.mark.models,
    pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed"),
]


@pytest.fixture
def bnb(virtual_gpu):
    """The package, imported where there is a card."""
    import bitsandbytes

    return bitsandbytes


def test_a_layer_in_4_bits(virtual_gpu, bnb):
    """Half a byte a weight, four bytes for 64 of them, and a table of 16 values, for which 4 bytes each are copied.

    A large product dequantises the weight: 32 MiB in half precision beside the result.
    """
    layer = bnb.nn.Linear4bit(4096, 4096, bias=False, compress_statistics=False, compute_dtype=torch.float16)
    layer.cuda()
    absmax_bytes, code_bytes = 4096 * 4096 // 64 * 4, 512

    assert (4096 * 4096 // 2, 1) == tuple(layer.weight.shape)
    assert 8 * MIB + absmax_bytes + code_bytes == torch.cuda.memory_allocated()
    tokens = torch.ones(2048, 4096, device="cuda", dtype=torch.float16)
    nn.functional.linear(tokens, tokens)  # cuBLAS takes its workspace
    assert (32 + 16) * MIB == peak_of(virtual_gpu, lambda: layer(tokens))


def test_double_quantisation(virtual_gpu, bnb):
    """The scales take a byte each, and 4 bytes for 256 of them."""
    layer = bnb.nn.Linear4bit(4096, 4096, bias=False).cuda()
    state = layer.weight.quant_state

    assert (torch.uint8, 4096 * 4096 // 64) == (state.absmax.dtype, state.absmax.numel())
    assert (torch.float32, 4096 * 4096 // 64 // 256) == (state.state2.absmax.dtype, state.state2.absmax.numel())


def test_the_gradient_of_a_frozen_layer(virtual_gpu, bnb):
    """QLoRA: the weight in 4 bits gets none, what goes into it does."""
    layer = bnb.nn.Linear4bit(256, 128, compute_dtype=torch.bfloat16).cuda()
    tokens = torch.ones(16, 256, device="cuda", requires_grad=True)
    layer(tokens).sum().backward()

    assert (16, 256) == tuple(tokens.grad.shape)
    assert layer.weight.grad is None


def test_a_layer_in_8_bits(virtual_gpu, bnb):
    """A byte a weight and 4 bytes a row; outliers are said to be unknown."""
    layer = bnb.nn.Linear8bitLt(4096, 4096, bias=False, has_fp16_weights=False, threshold=6.0).cuda()

    assert torch.int8 == layer.weight.dtype
    assert 16 * MIB + 4096 * 4 == torch.cuda.memory_allocated()
    assert (8, 4096) == tuple(layer(torch.ones(8, 4096, device="cuda", dtype=torch.float16)).shape)
    assert "outliers" in slugs(virtual_gpu)


def test_an_optimizer_of_8_bits(virtual_gpu, bnb):
    """Two bytes a weight, 4 bytes for 256 of each, two tables of 256 values."""
    weight = nn.Parameter(torch.ones(4 * MIB, device="cuda"))
    weight.grad = torch.ones_like(weight)
    before = torch.cuda.memory_allocated()
    optimizer = bnb.optim.AdamW8bit([weight])
    optimizer.step()

    assert 2 * 4 * MIB + 2 * (4 * MIB // 256 * 4) + 2 * 1024 == torch.cuda.memory_allocated() - before


def test_a_paged_optimizer(virtual_gpu, bnb):
    """Its moments are CUDA's to place: none of PyTorch's memory, and said with their size."""
    weight = nn.Parameter(torch.ones(4 * MIB, device="cuda"))
    weight.grad = torch.ones_like(weight)
    before = torch.cuda.memory_allocated()
    optimizer = bnb.optim.PagedAdamW32bit([weight])
    optimizer.step()
    (record,) = [record for record in virtual_gpu.approximations.records() if record.slug == "paged"]

    assert 2 * 16 * MIB == record.bytes
    assert MIB > torch.cuda.memory_allocated() - before
