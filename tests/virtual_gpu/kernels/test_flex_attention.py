"""`flex_attention`: an output and one float a row, forward and backward."""

import pytest
import torch
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

from ..cards import births_on, requested, slugs

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:flex_attention called without")]

QUERIES_BYTES = 2 * 8 * 256 * 64 * 2
KEYS_BYTES = QUERIES_BYTES // 4
ROWS_BYTES = 2 * 8 * 256 * 4


def inputs(heads=8, heads_of_keys=2, needs_grad=True):
    """Queries, keys and values in bfloat16, as projections leave them: heads beside positions."""
    shapes = [(2, 256, count, 64) for count in (heads, heads_of_keys, heads_of_keys)]
    tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for shape in shapes]
    return [tensor.requires_grad_(needs_grad) for tensor in tensors]


def test_forward_and_backward(virtual_gpu):
    """No scores; the output lies as the queries do."""
    query, key, value = inputs()
    mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cuda")
    with births_on(virtual_gpu) as forward:
        out = flex_attention(query, key, value, block_mask=mask, enable_gqa=True)
    gradient = torch.ones_like(out)
    with births_on(virtual_gpu) as backward:
        out.backward(gradient)

    assert requested(forward) == [QUERIES_BYTES, ROWS_BYTES]
    assert requested(backward) == [ROWS_BYTES, QUERIES_BYTES, KEYS_BYTES, KEYS_BYTES]
    assert (out.shape, out.stride()) == (query.shape, query.stride())
    assert "flex-attention" in slugs(virtual_gpu)


def test_a_mask_of_documents(virtual_gpu):
    """A mask that looks up where each word belongs, evaluated under a function mode of torch's own."""
    document = torch.zeros(2, 256, dtype=torch.int64, device="cuda")

    def mask(b, h, q, k):
        return (q >= k) & (document[b, q] == document[b, k])

    assert create_block_mask(mask, 2, None, 256, 256, device="cuda").shape == (2, 1, 256, 256)


def test_without_gradients_the_statistics_go(virtual_gpu):
    """Only the output is left."""
    query, key, value = inputs(needs_grad=False)
    before = torch.cuda.memory_allocated()
    _out = flex_attention(query, key, value, enable_gqa=True)

    assert torch.cuda.memory_allocated() - before == QUERIES_BYTES


def test_statistics_on_request(virtual_gpu):
    """The logarithms of the sums, as floats."""
    _out, aux = flex_attention(*inputs(8, 8), return_aux=AuxRequest(lse=True))

    assert (aux.lse.shape, aux.lse.dtype) == ((2, 8, 256), torch.float32)


def test_a_learned_bias_gets_its_gradient(virtual_gpu):
    """A variable of the function around `score_mod`."""
    bias = torch.zeros(8, device="cuda", requires_grad=True)
    flex_attention(*inputs(8, 8), score_mod=lambda score, b, h, q, k: score + bias[h]).sum().backward()

    assert bias.grad.shape == bias.shape
