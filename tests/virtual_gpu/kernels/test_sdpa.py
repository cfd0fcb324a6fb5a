"""Which attention kernel the card takes, and what it allocates."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from peaksight.gpus import find_card
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.sdpa import Backend, Call, choose_backend

from ..cards import births_on, card_of, requested

pytestmark = pytest.mark.torch

CUDNN, FLASH, EFFICIENT, MATH = Backend
ALL = frozenset(Backend)
B, H, L, D = 2, 4, 64, 32
SHAPE = (B, H, L, D)
CALL = Call(
    query=SHAPE, key=SHAPE, value=SHAPE, dtype=torch.bfloat16, has_mask=False, dropout=0.0, is_causal=True,
    needs_grad=True, contiguous_last=True,
)  # fmt: skip


def chosen(card, build="2.11+cu130", enabled=ALL, **about):
    """The backend of the reference call, changed by `about`."""
    return choose_backend(replace(CALL, **about), rules_for(build, find_card(card)), enabled)


def heads_of(size, value=None):
    """Shapes with heads of `size`."""
    return {"query": (B, H, L, size), "key": (B, H, L, size), "value": (B, H, L, value or size)}


@pytest.mark.parametrize(
    ("card", "build", "expected"),
    [
        ("h100-80gb", "2.11+cu130", CUDNN),
        ("h100-80gb", "2.11+cu128", FLASH),
        ("b200", "2.14+cu130", CUDNN),
        ("a100-80gb", "2.14+cu130", FLASH),
        ("rtx-4090", "2.14+cu130", FLASH),
        ("t4", "2.14+cu130", MATH),
    ],
)
def test_default_order(card, build, expected):
    """cuDNN comes first on Hopper and sm100 from CUDA 13 on, flash from Ampere on; a T4 has no bfloat16 kernel."""
    assert expected == chosen(card, build)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, CUDNN),
        ({"dtype": torch.float16}, CUDNN),
        ({"dtype": torch.float32}, EFFICIENT),
        ({"dtype": torch.float64}, MATH),
        ({"has_mask": True}, CUDNN),
        ({"dropout": 0.1}, FLASH),
        ({"dropout": 0.125}, CUDNN),
        ({"dropout": 0.1, "has_mask": True}, EFFICIENT),
        ({"contiguous_last": False}, MATH),
        (heads_of(128), CUDNN),
        (heads_of(136), FLASH),
        (heads_of(192, 128), CUDNN),
        (heads_of(256), FLASH),
        (heads_of(264), EFFICIENT),
        (heads_of(60), FLASH),
        (heads_of(60) | {"has_mask": True}, MATH),
        (heads_of(60) | {"dtype": torch.float32}, EFFICIENT),
        (heads_of(62) | {"dtype": torch.float32}, MATH),
        (heads_of(64, 72), CUDNN),
        (heads_of(136, 72), EFFICIENT),
        ({"key": (B, H, 1, D), "value": (B, H, 1, D), "is_causal": False}, FLASH),
        ({"key": (B, H, 1, D), "value": (B, H, 1, D), "is_causal": False, "needs_grad": False}, CUDNN),
        ({"query": (B, H, 0, D)}, MATH),
        ({"query": (H, L, D), "key": (H, L, D), "value": (H, L, D)}, MATH),
    ],
)
def test_choice_on_hopper(about, expected):
    """The first backend whose limits a call keeps."""
    assert expected == chosen("h100-80gb", **about)


@pytest.mark.parametrize(
    ("card", "about", "expected"),
    [
        ("a100-80gb", {"has_mask": True}, EFFICIENT),
        ("a100-80gb", {"key": (B, H, 32, D), "value": (B, H, 32, D)}, EFFICIENT),
        ("a100-80gb", heads_of(200), FLASH),
        ("rtx-4090", heads_of(200), EFFICIENT),
        ("rtx-4090", heads_of(200) | {"needs_grad": False}, FLASH),
        ("rtx-4090", heads_of(240), FLASH),
        ("rtx-4090", heads_of(240) | {"dropout": 0.1}, EFFICIENT),
        ("t4", {"dtype": torch.float16}, EFFICIENT),
        ("t4", {"dtype": torch.float32}, EFFICIENT),
    ],
)
def test_choice_elsewhere(card, about, expected):
    """Flash takes no mask, no causal rectangle, and on Ada not every head size with gradients."""
    assert expected == chosen(card, **about)


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [(ALL - {CUDNN}, FLASH), ({EFFICIENT, MATH}, EFFICIENT), ({MATH}, MATH), ({CUDNN}, CUDNN)],
)
def test_switched_off(enabled, expected):
    """Only what is left on is taken."""
    assert expected == chosen("h100-80gb", enabled=frozenset(enabled))


def test_deterministic_algorithms():
    """cuDNN's backward is not deterministic, so it steps back."""
    torch.use_deterministic_algorithms(True)
    try:
        assert FLASH == chosen("h100-80gb")
    finally:
        torch.use_deterministic_algorithms(False)


def operands(dtype=torch.bfloat16, *, length=L, head=D, requires_grad=True):
    """Query, key and value on the card."""
    return [torch.randn(B, H, length, head, device="cuda", dtype=dtype).requires_grad_(requires_grad) for _ in range(3)]


OUT = B * H * L * D * 2
LOGSUMEXP = B * H * L * 4
CUDNN_SCRATCH = 256
PROBABILITIES = B * H * L * L


@pytest.mark.parametrize(
    ("backend", "sizes"),
    [
        (SDPBackend.CUDNN_ATTENTION, [OUT, LOGSUMEXP, 8, 8, CUDNN_SCRATCH]),
        (SDPBackend.FLASH_ATTENTION, [OUT, LOGSUMEXP, 16, 8]),
        (SDPBackend.EFFICIENT_ATTENTION, [OUT, LOGSUMEXP]),
    ],
)
def test_what_is_saved(virtual_gpu, backend, sizes):
    """The fused kernels save their output and one float a row; cuDNN and flash keep their random state on the card."""
    inputs = operands()
    with births_on(virtual_gpu) as births, sdpa_kernel(backend):
        F.scaled_dot_product_attention(*inputs, is_causal=True)

    assert sizes == requested(births)


def test_math_saves_probabilities(virtual_gpu):
    """The unfused path holds (B, H, L, L) probabilities; in half precision it computes them in single."""
    inputs = operands()
    with births_on(virtual_gpu) as births, sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(*inputs)
    alive = [birth for birth in births if birth.died is None]

    assert 4 * PROBABILITIES in requested(alive)
    assert torch.bfloat16 == out.dtype


def test_efficient_pads_its_statistics(virtual_gpu):
    """The memory-efficient kernel rounds the rows of its statistics up to 32: 50 rows take 64."""
    inputs = operands(torch.float32, length=50)
    with births_on(virtual_gpu) as births:
        F.scaled_dot_product_attention(*inputs)

    assert [B * H * 50 * D * 4, B * H * 64 * 4] == requested(births)


def test_no_statistics_without_gradients(virtual_gpu):
    """Without gradients, the memory-efficient kernel saves none."""
    inputs = operands(torch.float32, requires_grad=False)
    with births_on(virtual_gpu) as births:
        F.scaled_dot_product_attention(*inputs)

    assert [B * H * L * D * 4] == requested(births)


def test_flash_pads_heads():
    """Flash pads heads of 60 to 64: three padded operands are made, and saved."""
    with card_of("a100-80gb") as gpu:
        inputs = operands(head=60)
        with births_on(gpu) as births:
            out = F.scaled_dot_product_attention(*inputs)

    assert [B * H * L * 64 * 2] * 4 == [size for size in requested(births) if size > LOGSUMEXP]
    assert 60 == out.shape[-1]


def test_boolean_mask_becomes_a_bias(virtual_gpu):
    """A boolean mask of (L, L) is turned into two bytes an element, beside its negation while it is filled."""
    inputs = operands()
    mask = torch.ones(L, L, dtype=torch.bool, device="cuda").tril()
    with births_on(virtual_gpu) as births:
        F.scaled_dot_product_attention(*inputs, attn_mask=mask)

    assert [L * L * 2, L * L, OUT, LOGSUMEXP, CUDNN_SCRATCH] == [size for size in requested(births) if size > 8]


def test_efficient_aligns_a_bias():
    """The memory-efficient kernel pads a bias of 50 columns to 64."""
    with card_of("a100-80gb") as gpu:
        inputs = operands(length=50)
        bias = torch.zeros(50, 50, dtype=torch.bfloat16, device="cuda")
        with births_on(gpu) as births:
            F.scaled_dot_product_attention(*inputs, attn_mask=bias)

    assert 50 * 64 * 2 in requested(births)


def test_grouped_queries(virtual_gpu):
    """cuDNN takes fewer key heads than query heads as they are."""
    query, key, value = operands()
    with births_on(virtual_gpu) as fused:
        F.scaled_dot_product_attention(query, key[:, :2], value[:, :2], enable_gqa=True)

    assert [OUT, LOGSUMEXP, CUDNN_SCRATCH] == [size for size in requested(fused) if size > 8]


def test_grouped_queries_without_a_kernel(virtual_gpu):
    """The memory-efficient kernel of 2.11 wants as many key heads: alone it is refused, in PyTorch's words."""
    query, key, value = operands()

    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(query, key[:, :2], value[:, :2], enable_gqa=True)


def test_grouped_queries_are_repeated():
    """From 2.14 on the memory-efficient kernel gets its key heads repeated."""
    with card_of("h100-80gb", build="2.14+cu130") as gpu:
        query, key, value = operands()
        with births_on(gpu) as repeated, sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            F.scaled_dot_product_attention(query, key[:, :2], value[:, :2], enable_gqa=True)

    assert [OUT, OUT] == requested(repeated)[:2]


@pytest.mark.parametrize("autocast", [False, True])
def test_every_caller_takes_the_card_s_kernel(virtual_gpu, autocast):
    """F.scaled_dot_product_attention, nn.MultiheadAttention and nn.TransformerEncoderLayer take the same one."""
    attend = nn.MultiheadAttention(64, 2, batch_first=True).cuda()
    layer = nn.TransformerEncoderLayer(64, 2, 64, batch_first=True).cuda()
    batch = torch.randn(2, 16, 64, device="cuda")
    ops = []
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        for call in (lambda: attend(batch, batch, batch, need_weights=False), lambda: layer(batch)):
            with births_on(virtual_gpu) as births:
                call()
            ops.append({birth.op for birth in births if "attention" in birth.op})

    kernel = "flash" if autocast else "efficient"
    assert [
        {"aten::_scaled_dot_product_cudnn_attention"}
        if autocast
        else {f"aten::_scaled_dot_product_{kernel}_attention"},
        {f"aten::_scaled_dot_product_{kernel}_attention"},
    ] == ops


def test_inference_mode(virtual_gpu):
    """Inference mode skips autograd's keys, not the card's kernel."""
    inputs = operands(requires_grad=False)
    with births_on(virtual_gpu) as births, torch.inference_mode():
        F.scaled_dot_product_attention(*inputs)

    assert {"aten::_scaled_dot_product_cudnn_attention"} == {birth.op for birth in births}


def test_gradients(virtual_gpu):
    """Backward gives the gradients of query, key and value."""
    inputs = operands()
    F.scaled_dot_product_attention(*inputs, is_causal=True).sum().backward()

    assert [SHAPE] * 3 == [tuple(tensor.grad.shape) for tensor in inputs]
