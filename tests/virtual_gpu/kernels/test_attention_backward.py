"""The accumulators of attention's backward, against an H100 and an H200."""

import json
from pathlib import Path

import pytest
import torch

from peaksight.gpus import find_card
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.attention_backward import (
    Kernel,
    cudnn_bytes,
    flash_bytes,
    kernel_for,
    packed_flash_bytes,
    workspace_bytes,
)

from ..cards import card_of, events_on

pytestmark = pytest.mark.torch

MEASURED = Path(__file__).parents[3] / "benchmarks" / "kernels" / "h100-80gb_2.11+cu130_2026-11-28.jsonl"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CASES = [
    case
    for case in map(json.loads, MEASURED.read_text().splitlines())
    if case.get("op") == "sdpa" and "error" not in case and case["backend"] in ("cudnn", "flash", "efficient")
]
H100 = rules_for("2.11+cu130", find_card("h100-80gb"))


def heads_of(size, dtype=torch.float16, *, batch=2, heads=4, length=256):
    """A query, key or value."""
    return torch.empty(batch, heads, length, size, dtype=dtype, device="meta")


def accumulators(case):
    """The blocks that the rule gives for `case`."""
    query = torch.empty(case["shape"], dtype=DTYPES[case["dtype"]], device="meta")
    if case["backend"] == "cudnn":
        return [cudnn_bytes(query, query, query)]
    if case["backend"] == "flash":
        return list(flash_bytes(query.shape, H100))
    return [workspace_bytes(query, query, query, kernel_for(query.dtype, query.shape[3], H100))]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['backend']}-{c['dtype']}-{c['shape']}-{c['kind']}")
def test_accumulators_are_the_measured_ones(case):
    """Every accumulator of the rule is among the blocks that the card took (torch 2.11+cu130, 2026-11-28)."""
    taken = [event for event in case["backward"] if event > 0]

    assert set(accumulators(case)) <= set(taken)


def test_grouped_heads():
    """cuDNN with 16 query and 4 key heads took 16,908,544 bytes: a gradient of key and value for each query head."""
    query = torch.empty(2, 16, 1024, 64, dtype=torch.bfloat16, device="meta")
    key = torch.empty(2, 4, 1024, 64, dtype=torch.bfloat16, device="meta")

    assert cudnn_bytes(query, key, key) == 16_908_544


@pytest.mark.parametrize(
    ("dtype", "size", "expected"),
    [(torch.float16, 160, 5_767_936), (torch.float16, 256, 6_292_480), (torch.float32, 36, 524_800),
     (torch.float32, 192, 1_573_632)],
)  # fmt: skip
def test_workspace_of_large_heads(dtype, size, expected):
    """Heads beyond the registers take gradients of key and value, too (H200, torch 2.11+cu130, 2026-11-28)."""
    given = heads_of(size, dtype)

    assert expected == workspace_bytes(given, given, given, kernel_for(dtype, size, H100))


@pytest.mark.parametrize(
    ("card", "dtype", "size", "expected"),
    [
        ("h100-80gb", torch.float16, 128, Kernel(128, 128, 128)),
        ("rtx-4090", torch.float16, 96, Kernel(128, 64, 96)),
        ("rtx-4090", torch.float16, 128, Kernel(64, 64, 128)),
        ("t4", torch.float16, 128, Kernel(128, 64, 128)),
        ("t4", torch.float32, 256, Kernel(64, 64, 1 << 16)),
    ],
)
def test_kernel_of_the_card(card, dtype, size, expected):
    """The lists of cutlassB.h: sm75, sm80, and sm86 to sm89 with its own kernel for heads of 96."""
    assert expected == kernel_for(dtype, size, rules_for("2.14+cu130", find_card(card)))


def test_deterministic_runs():
    """Flash adds one gradient for each split of the card's multiprocessors, the efficient kernel splits no keys."""
    query = heads_of(256)
    torch.use_deterministic_algorithms(True)
    try:
        flash = flash_bytes(query.shape, H100)[1]
        workspace = workspace_bytes(query, query, query, kernel_for(query.dtype, 256, H100))
    finally:
        torch.use_deterministic_algorithms(False)

    assert flash == 17 * flash_bytes(query.shape, H100)[1]
    assert workspace < workspace_bytes(query, query, query, kernel_for(query.dtype, 256, H100))


def test_packed_sequences():
    """Each of three sequences may need a block of 128 rows more, in both accumulators of flash attention."""
    rows = (1000 + 3 * 128) * 4

    assert (4 * rows, 4 * rows * 64) == packed_flash_bytes((1000, 4, 64), 3, H100)


ROWS = {"dropout_p": 0.0, "is_causal": True, "return_debug_mask": False}


def test_by_rows():
    """The operators below the composites, as an H200 ran them (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""
    with card_of("h200") as gpu:
        query, key, value = (
            torch.randn(4, 4, length, 8, device="cuda", dtype=torch.bfloat16).transpose(1, 2).requires_grad_()
            for length in (11, 32, 32)
        )
        with events_on(gpu) as forward:
            out = torch.ops.aten._flash_attention_forward(query, key, value, None, None, 11, 32, **ROWS)[0]
        with events_on(gpu) as backward:
            torch.autograd.backward(out, torch.ones_like(out))

    assert [2816, 704, 16, 8] == forward
    flash = [2816, 2816, 2816, 8192, 8192, 8192, 262144, -262144, -8192, -2816, -2816]
    assert flash == backward[1 : 1 + len(flash)]
