"""Operators that decompose otherwise on the card than on meta tensors."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ..cards import births_on, card_of, requested

pytestmark = pytest.mark.torch

NUMEL = 64 * 96


def batch(dtype=torch.float32):
    """64 rows of 96 on the card, part of a graph."""
    return torch.randn(64, 96, device="cuda", dtype=dtype, requires_grad=True) * 1


@pytest.mark.parametrize(
    "drop",
    [
        lambda x: F.dropout(x, 0.1),
        lambda x: nn.Dropout(0.1)(x),
        lambda x: torch.dropout(x, 0.1, True),
        lambda x: F.dropout(x, 0.1, training=True, inplace=False),
    ],
)
def test_dropout_masks_are_boolean(virtual_gpu, drop):
    """Dropout keeps its output and one byte an element."""
    x = batch()
    with births_on(virtual_gpu) as births:
        out = drop(x)

    assert [NUMEL, 4 * NUMEL] == requested(births)
    assert all(birth.died is None for birth in births)
    assert out.requires_grad


@pytest.mark.parametrize("drop", [nn.Dropout(0.1).eval(), nn.Dropout(0.0)])
def test_dropout_that_drops_nothing(virtual_gpu, drop):
    """In evaluation, or with a rate of zero, dropout returns its input."""
    x = batch()
    with births_on(virtual_gpu) as births:
        drop(x)

    assert [] == births


def test_dropout_in_half(virtual_gpu):
    """The mask has one byte an element in any dtype."""
    x = batch(torch.bfloat16)
    with births_on(virtual_gpu) as births:
        F.dropout(x)

    assert [NUMEL, 2 * NUMEL] == requested(births)


def test_dropout_inside_attention(virtual_gpu):
    """nn.MultiheadAttention that returns its weights drops them with a boolean mask: (2 * 2, 16, 16) bytes."""
    attend = nn.MultiheadAttention(64, 2, dropout=0.1, batch_first=True).cuda()
    x = torch.randn(2, 16, 64, device="cuda")
    with births_on(virtual_gpu) as births:
        attend(x, x, x, need_weights=True)

    assert [2 * 2 * 16 * 16] == requested(b for b in births if b.op == "aten::native_dropout")[:1]


def test_gradient_of_dropout(virtual_gpu):
    """Its backward gives one gradient, and the mask is freed."""
    x = batch()
    out = F.dropout(x)
    with births_on(virtual_gpu) as births:
        out.backward(torch.ones_like(out))

    assert "aten::native_dropout_backward" in {birth.op for birth in births}
    assert NUMEL not in [b.requested_bytes for b in virtual_gpu.ledger.births if b.died is None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_norm_statistics(virtual_gpu, dtype):
    """Mean and deviation are one float a row each, in any dtype."""
    x, norm = batch(dtype), nn.LayerNorm(96).to("cuda", dtype)
    with births_on(virtual_gpu) as births:
        norm(x)

    assert [NUMEL * dtype.itemsize, 64 * 4, 64 * 4] == requested(births)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_statistics(virtual_gpu, dtype):
    """RMSNorm keeps its output and one float a row."""
    x, norm = batch(dtype), nn.RMSNorm(96).to("cuda", dtype)
    with births_on(virtual_gpu) as births:
        norm(x).sum().backward()

    assert [NUMEL * dtype.itemsize, 64 * 4] == requested(births)[:2]
    assert (96,) == tuple(norm.weight.grad.shape)


def test_rms_norm_in_inference_mode(virtual_gpu):
    """The fused kernel runs in inference mode too."""
    norm = nn.RMSNorm(96).cuda()
    with torch.inference_mode():
        x = torch.randn(64, 96, device="cuda")
        with births_on(virtual_gpu) as births:
            norm(x)

    assert [4 * NUMEL, 64 * 4] == requested(births)


@pytest.mark.parametrize(("build", "is_fused"), [("2.11+cu130", False), ("2.13+cu130", True)])
def test_rms_norm_under_autocast(build, is_fused):
    """From torch 2.13 on autocast casts to single precision; before, mixed dtypes do not reach the fused kernel."""
    with card_of("h100-80gb", build=build) as gpu:
        x, norm = batch(torch.bfloat16), nn.RMSNorm(96).cuda()
        with births_on(gpu) as births, torch.autocast("cuda", torch.bfloat16):
            out = norm(x)

    assert is_fused is ("aten::_fused_rms_norm" in {birth.op for birth in births})
    assert (torch.float32 if is_fused else torch.bfloat16) == out.dtype


def test_group_norm_statistics(virtual_gpu):
    """Mean and deviation are one number a sample and group each; two coefficients of each channel are temporary."""
    x = torch.randn(2, 8, 4, 4, device="cuda")
    norm = nn.GroupNorm(4, 8).cuda()
    with births_on(virtual_gpu) as births:
        norm(x)

    assert [2 * 8 * 16 * 4, 2 * 4 * 4, 2 * 4 * 4, 2 * 8 * 4, 2 * 8 * 4] == requested(births)


def test_batch_norm_statistics(virtual_gpu):
    """Batch norm saves mean and deviation of each channel, and its running statistics change in place."""
    x = torch.randn(2, 8, 4, 4, device="cuda")
    norm = nn.BatchNorm2d(8).cuda()
    with births_on(virtual_gpu) as births:
        norm(x)

    assert [2 * 8 * 16 * 4, 8 * 4, 8 * 4] == [size for size in requested(births) if size]


def test_cross_entropy(virtual_gpu):
    """The log-probabilities are saved, in the dtype of the logits; the loss and the total weight are scalars."""
    logits = batch()
    target = torch.zeros(64, dtype=torch.int64, device="cuda")
    with births_on(virtual_gpu) as births:
        F.cross_entropy(logits, target)

    assert [4 * NUMEL, 4, 4] == requested(births)


@pytest.mark.parametrize(
    ("activate", "sizes"),
    [
        (F.gelu, [4 * NUMEL]),
        (F.silu, [4 * NUMEL]),
        (F.relu, [4 * NUMEL]),
        (lambda x: F.relu(x, inplace=True), []),
        (lambda x: F.softmax(x, -1), [4 * NUMEL]),
        (torch.sigmoid, [4 * NUMEL]),
        (lambda x: F.glu(x, -1), [2 * NUMEL]),
    ],
)
def test_activations(virtual_gpu, activate, sizes):
    """Activations take their output and nothing else."""
    x = batch()
    with births_on(virtual_gpu) as births:
        activate(x)

    assert sizes == requested(births)


def test_pooling_keeps_indices(virtual_gpu):
    """Max pooling saves an int64 for each of its 2 * 8 * 2 * 2 outputs."""
    x = torch.randn(2, 8, 4, 4, device="cuda", requires_grad=True)
    with births_on(virtual_gpu) as births:
        F.max_pool2d(x, 2)

    assert [64 * 4, 64 * 8] == requested(births)


def test_isfinite(virtual_gpu):
    """The check takes what the card's takes: absolute value, comparison, equality and product."""
    x = batch()
    with births_on(virtual_gpu) as births:
        torch.isfinite(x)

    assert [4 * NUMEL, NUMEL, NUMEL, NUMEL] == requested(births)


def test_linear_of_a_transposed_input_adds_its_bias_in_place(virtual_gpu):
    """A copy of the input and the output (H200: 4,194,304 and 6,291,456 bytes), no third block for the bias."""
    layer = nn.Linear(256, 384).cuda()
    x = torch.randn(256, 16, 256, device="cuda").transpose(0, 1)
    with births_on(virtual_gpu) as births:
        layer(x)

    assert [4194304, 6291456] == requested(b for b in births if b.op != "cublas workspace")


def test_bilinear_runs_in_steps(virtual_gpu):
    """An output, then for each of 32 features a product and its sum (H200: 65536, and 49152 with 1024)."""
    inputs = (torch.randn(256, 32, device="cuda"), torch.randn(256, 48, device="cuda"))
    weight = torch.randn(64, 32, 48, device="cuda")
    with births_on(virtual_gpu) as births:
        F.bilinear(*inputs, weight)

    assert [65536, 49152, 1024, 49152, 1024] == requested(b for b in births if "workspace" not in b.op)[:5]


@pytest.mark.parametrize("activation", [torch.nn.functional.silu, torch.nn.functional.mish])
def test_activations_with_a_backward_kernel(virtual_gpu, activation):
    """One block, the gradient, where other devices take six steps."""
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    out = activation(x)
    gradient = torch.ones_like(out)
    with births_on(virtual_gpu) as births:
        out.backward(gradient)

    assert requested(births) == [x.nbytes]
