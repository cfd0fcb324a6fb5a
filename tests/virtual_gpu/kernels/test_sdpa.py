"""Which attention kernel the card takes, and what it allocates."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from peaksight.gpus import find_card
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.attention_forward import num_splits
from peaksight.virtual_gpu.kernels.sdpa_choice import Backend, Call, choose_backend

from ..cards import births_on, card_of, events_on, h100, requested

pytestmark = pytest.mark.torch

MATH, FLASH, EFFICIENT, CUDNN = Backend
ALL = frozenset(Backend)
B, H, L, D = 2, 4, 64, 32
SHAPE = (B, H, L, D)
CALL = Call(query=SHAPE, key=SHAPE, value=SHAPE, dtype=torch.bfloat16, is_causal=True)
MASK = {"mask": (L, L), "is_causal": False}
FP16, FP32, FP64 = ({"dtype": dtype} for dtype in (torch.float16, torch.float32, torch.float64))
GROUPED = {"key": (B, 2, L, D), "value": (B, 2, L, D), "grouped": True}
SINGLE_KEY = {"key": (B, H, 1, D), "value": (B, H, 1, D), "is_causal": False}
SINGLE_HEAD = {"key": (B, 1, L, D), "value": (B, 1, L, D)}


def chosen(card, build="2.11+cu130", enabled=ALL, order=(), **about):
    """The backend of the reference call, changed by `about`."""
    return choose_backend(replace(CALL, **about), rules_for(build, find_card(card)), frozenset(enabled), order)


def heads_of(size, value=None):
    """Shapes with heads of `size`."""
    return {"query": (B, H, L, size), "key": (B, H, L, size), "value": (B, H, L, value or size)}


@pytest.mark.parametrize(
    ("card", "build", "expected"),
    [
        ("h200", "2.11+cu130", CUDNN),
        ("h200", "2.11+cu128", CUDNN),
        ("h200", "2.13+cu126", FLASH),
        ("b200", "2.14+cu130", CUDNN),
        ("rtx-5090", "2.14+cu130", FLASH),
        ("a100-80gb", "2.14+cu130", FLASH),
        ("rtx-4090", "2.14+cu130", FLASH),
        ("rtx-3090", "2.14+cu130", FLASH),
        ("t4", "2.14+cu130", MATH),
        ("v100-32gb", "2.13+cu126", MATH),
    ],
)
def test_default_order(card, build, expected):
    """cuDNN comes first on Hopper and sm100 (`check_prefer_cudnn_attention`) where the wheel pins one newer than 9.15.

    torch 2.11+cu128 pins 9.19; the wheels for CUDA 12.6 stayed with 9.10. Flash wants sm80
    (`check_flash_attention_hardware_support`); before it no kernel takes bfloat16 (`can_use_mem_efficient_attention`).
    """
    assert expected is chosen(card, build)


def test_deprioritized(monkeypatch):
    """An environment variable of PyTorch's moves cuDNN to the end."""
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")

    assert FLASH is chosen("h200")


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, CUDNN),
        (FP16, CUDNN),
        (FP32, EFFICIENT),
        (FP64, MATH),
        ({"dtype": None}, MATH),
        (MASK, CUDNN),
        (MASK | {"mask": (B, 1, 1, L)}, CUDNN),
        (MASK | {"mask": (H, L, L)}, EFFICIENT),
        (MASK | {"mask_needs_grad": True}, EFFICIENT),
        ({"dropout": 0.1}, CUDNN),
        ({"contiguous_last": False}, MATH),
        (heads_of(72), CUDNN),
        (heads_of(160), CUDNN),
        (heads_of(256), CUDNN),
        (heads_of(264), EFFICIENT),
        (heads_of(60), FLASH),
        (heads_of(60) | MASK, MATH),
        (heads_of(60) | FP32, EFFICIENT),
        (heads_of(62) | FP32, MATH),
        (heads_of(64, 72), CUDNN),
        (heads_of(64, 72) | {"deterministic": True}, EFFICIENT),
        (GROUPED, CUDNN),
        (GROUPED | FP32, MATH),
        (GROUPED | {"grouped": False}, MATH),
        (SINGLE_HEAD, MATH),
        (SINGLE_KEY, FLASH),
        ({"query": (B, H, 1, D), "is_causal": False, "dropout": 0.1}, FLASH),
        ({"query": (B, H, 0, D)}, MATH),
        ({"query": (H, L, D), "key": (H, L, D), "value": (H, L, D)}, MATH),
    ],
)
def test_choice_on_hopper(about, expected):
    """What an H200 took (torch 2.11+cu130, cuDNN 9.19, 2026-11-28, benchmarks/operators), and what 2.11 checks."""
    about = dict(about)
    torch.use_deterministic_algorithms(about.pop("deterministic", False))
    try:
        assert expected is chosen("h200", **about)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    ("build", "about", "expected"),
    [
        ("2.12+cu130", {"dropout": 0.1}, FLASH),
        ("2.12+cu130", {"dropout": 0.125}, CUDNN),
        ("2.13+cu130", heads_of(160), CUDNN),
        ("2.14+cu130", heads_of(160), FLASH),
        ("2.14+cu130", heads_of(160) | {"needs_grad": False}, CUDNN),
        ("2.14+cu130", heads_of(192, 128), CUDNN),
        ("2.14+cu130", heads_of(256), CUDNN),
        ("2.13+cu130", FP32 | {"aligned": False}, MATH),
        ("2.11+cu130", FP32 | {"aligned": False}, EFFICIENT),
        ("2.13+cu130", FP32 | GROUPED, MATH),
        ("2.14+cu130", FP32 | GROUPED, EFFICIENT),
        ("2.14+cu130", FP32 | SINGLE_HEAD, EFFICIENT),
    ],
)
def test_choice_by_release(build, about, expected):
    """`check_cudnn_dropout`, `check_cudnn_d256_bprop_head_dim`, storage alignment and grouped heads came one by one."""
    assert expected is chosen("h200", build, **about)


@pytest.mark.parametrize(
    ("card", "about", "expected"),
    [
        ("b200", heads_of(136), FLASH),
        ("b200", heads_of(192, 128), CUDNN),
        ("a100-80gb", MASK, EFFICIENT),
        ("a100-80gb", {"key": (B, H, 32, D), "value": (B, H, 32, D)}, EFFICIENT),
        ("a100-80gb", heads_of(200), FLASH),
        ("a100-80gb", GROUPED, FLASH),
        ("rtx-4090", heads_of(200), EFFICIENT),
        ("rtx-4090", heads_of(200) | {"needs_grad": False}, FLASH),
        ("rtx-4090", heads_of(240), FLASH),
        ("rtx-3090", heads_of(240) | {"dropout": 0.1}, EFFICIENT),
        ("rtx-5090", heads_of(200), EFFICIENT),
        ("t4", FP16, EFFICIENT),
        ("t4", FP32 | heads_of(62), EFFICIENT),
        ("t4", FP16 | heads_of(60), MATH),
        ("v100-32gb", FP16, EFFICIENT),
    ],
)
def test_choice_elsewhere(card, about, expected):
    """Flash takes no mask, no causal rectangle and, on cards of sm86, sm89 and sm120, not every head with gradients.

    `check_requires_grad_and_head_dim_gt192_constraints_on_sm86_89_or_120`; the alignment that the memory-efficient
    kernel asks for is `minimum_gemm_alignment`, none for single precision before sm80.
    """
    assert expected is chosen(card, **about)


@pytest.mark.parametrize(
    ("card", "enabled", "order", "expected"),
    [
        ("h200", ALL - {CUDNN}, (), FLASH),
        ("h200", {EFFICIENT, MATH}, (), EFFICIENT),
        ("h200", {MATH}, (), MATH),
        ("h200", {CUDNN}, (), CUDNN),
        ("a100-80gb", {CUDNN}, (), CUDNN),
        ("t4", {CUDNN, FLASH}, (), None),
        ("h200", ALL, (2, 1, 0, 3, 4), EFFICIENT),
        ("a100-80gb", ALL, (3, 1, 2, 0, 4), CUDNN),
    ],
)
def test_switched_off(card, enabled, order, expected):
    """Only what is left on is taken, in the order that was set."""
    assert expected is chosen(card, enabled=enabled, order=order)


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
        (SDPBackend.CUDNN_ATTENTION, [8, 8, OUT, LOGSUMEXP, CUDNN_SCRATCH]),
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
    """A boolean mask of (L, L) is turned into two bytes an element."""
    inputs = operands()
    mask = torch.ones(L, L, dtype=torch.bool, device="cuda").tril()
    with births_on(virtual_gpu) as births:
        F.scaled_dot_product_attention(*inputs, attn_mask=mask)

    assert [L * L * 2, OUT, LOGSUMEXP, CUDNN_SCRATCH] == [size for size in requested(births) if size > 8]


def test_efficient_aligns_a_bias():
    """The memory-efficient kernel pads a bias of 50 columns to 56."""
    with card_of("a100-80gb") as gpu:
        inputs = operands(length=50)
        bias = torch.zeros(50, 50, dtype=torch.bfloat16, device="cuda")
        with births_on(gpu) as births:
            F.scaled_dot_product_attention(*inputs, attn_mask=bias)

    assert 50 * 56 * 2 in requested(births)


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

    kernel = "cudnn" if autocast else "efficient"
    assert [{f"aten::_scaled_dot_product_{kernel}_attention"}] * 2 == ops


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


HEADS = (2, 8, 256, 64)
# (backend, dtype, query, key, mask, forward, backward) on an H200, torch 2.11+cu130, 2026-11-28, benchmarks/operators.
MEASURED = [
    (None, torch.bfloat16, (2, 8, 1, 64), (2, 8, 300, 64), None, [8, 8, 2048, 64],
     [2048, 614400, 614400, 4416, -4416, -64, -8, -8]),
    (None, torch.bfloat16, HEADS, (2, 2, 256, 64), None, [8, 8, 524288, 16384, 256, -256],
     [524288, 131072, 131072, 2113792, -2113792, -16384, -8, -8]),
    (SDPBackend.FLASH_ATTENTION, torch.bfloat16, HEADS, HEADS, None, [524288, 16384, 16, 8],
     [524288] * 5 + [16384, 1048576, -1048576, -16384, -524288, -524288, -16384, -16, -8]),
    (SDPBackend.EFFICIENT_ATTENTION, torch.float32, (2, 8, 100, 64), (2, 8, 300, 64), torch.bool,
     [4, 4, 1920000, -4, -4, 1945600, -1920000, 409600, 8192],
     [409600, 1228800, 1228800, 409600, 6400, 6400, -6400, -409600, 524800, -6400, -524800, -1945600, -8192,
      409600, -409600, 1228800, -1228800, 1228800, -1228800]),
    (SDPBackend.EFFICIENT_ATTENTION, torch.bfloat16, (2, 4, 256, 160), (2, 4, 256, 160), torch.bfloat16,
     [655360, 8192, 1310720, -1310720],
     [655360, 655360, 655360, 8192, 5767936, -8192, -5767936, -8192] + 3 * [655360, -655360]),
    (SDPBackend.MATH, torch.float16, HEADS, HEADS, None,
     [1048576, 1048576, 1048576, 1048576, 1048576, 4194304, 4194304, 1048576, 4096, 4, -4, -4096, -1048576, -4194304,
      2097152, 1048576, 524288, -1048576, -1048576, -1048576, -2097152],
     [1048576, 1048576, 4194304, -1048576, -1048576, 4194304, 4194304, -4194304, -4194304, -4194304, 1048576, 1048576,
      -4194304, -1048576, -1048576, 1048576, -1048576, 1048576, -1048576, 524288, -1048576, 524288, -1048576, 524288,
      -524288, 524288, -1048576]),
]  # fmt: skip


@pytest.mark.parametrize(("backend", "dtype", "query", "key", "mask", "forward", "backward"), MEASURED)
def test_events(backend, dtype, query, key, mask, forward, backward):
    """Every block that an H200 took and gave back, in its order."""
    with card_of("h200") as gpu:
        inputs = [torch.randn(shape, device="cuda", dtype=dtype).requires_grad_() for shape in (query, key, key)]
        mask = None if mask is None else torch.ones(*query[:3], key[2], device="cuda", dtype=mask)
        gemm = torch.ones(2, 2, device="cuda", requires_grad=True)
        (gemm @ gemm).sum().backward()
        with events_on(gpu) as in_forward, sdpa_kernel(backend or list(SDPBackend.__members__.values())[1:5]):
            out = F.scaled_dot_product_attention(*inputs, attn_mask=mask, enable_gqa=query[1] != key[1])
        grad = torch.ones_like(out)
        with events_on(gpu) as in_backward:
            torch.autograd.backward(out, grad)

    assert forward == in_forward
    assert backward == in_backward


def test_dropped_weights_replace_the_others(virtual_gpu):
    """Without gradients, unfused attention lets go of its weights once they are dropped out (H100, t5-base-ckpt)."""
    inputs = operands(torch.float32, requires_grad=False)
    with events_on(virtual_gpu) as events, sdpa_kernel(SDPBackend.MATH):
        F.scaled_dot_product_attention(*inputs, dropout_p=0.1)

    weights = 4 * PROBABILITIES
    dropped = [PROBABILITIES, weights, -PROBABILITIES, -weights]
    assert dropped in [events[start : start + 4] for start in range(len(events))]


def test_no_statistics_of_cudnn(virtual_gpu):
    """Without gradients cuDNN returns none either, and its seeds go at the end."""
    inputs = operands(requires_grad=False)
    with events_on(virtual_gpu) as events:
        out = F.scaled_dot_product_attention(*inputs)

    assert [8, 8, OUT, 256, -256, -8, -8] == events
    assert SHAPE == tuple(out.shape)


def test_priority_is_honoured(virtual_gpu):
    """`sdpa_kernel(..., set_priority=True)` moves a backend ahead of cuDNN, and puts the card's order back."""
    inputs = operands()
    ops = []
    for context in (
        sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION], set_priority=True),
        nullcontext(),
    ):
        with births_on(virtual_gpu) as births, context:
            F.scaled_dot_product_attention(*inputs)
        ops.append(births[-1].op)

    assert ["aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_cudnn_attention"] == ops


def test_unbatched_calls():
    """From 2.14 on a call of three dimensions gets a batch of one, and a fused kernel."""
    with card_of("h100-80gb", build="2.14+cu130") as gpu:
        query, key, value = (tensor.detach()[0] for tensor in operands())
        with births_on(gpu) as births:
            out = F.scaled_dot_product_attention(query, key, value)

    assert {"aten::_scaled_dot_product_cudnn_attention"} == {birth.op for birth in births}
    assert (H, L, D) == tuple(out.shape)


@pytest.mark.parametrize(
    ("shape", "splits"),
    [((2, 8, 512, 64), 2), ((4, 12, 1024, 64), 1), ((2, 8, 197, 64), 1), ((2, 8, 1024, 128), 1),
     ((1, 4, 2048, 256), 2), ((2, 6, 300, 80), 3)],
)  # fmt: skip
def test_flash_splits_keys(shape, splits):
    """As often as on an H100 of 132 multiprocessors (torch 2.11+cu130, 2026-11-28, benchmarks/kernels)."""
    batch, heads, length, head = shape

    assert splits == num_splits(batch * heads, length, length, head, 132)


def test_what_nobody_keeps_is_given_back_in_order():
    """The statistics before the state of the random numbers, as a tuple in C++ does."""
    with h100() as gpu, sdpa_kernel(SDPBackend.FLASH_ATTENTION), torch.no_grad():
        query, key, value = (torch.randn(2, 4, 256, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        with events_on(gpu) as events:
            _kept = F.scaled_dot_product_attention(query, key, value, dropout_p=0.1)

    statistics_bytes = 2 * 4 * 256 * 4
    assert [-statistics_bytes, -16, -8] == events[-3:]
