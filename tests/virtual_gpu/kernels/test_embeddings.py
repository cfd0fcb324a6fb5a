"""The gradients of embeddings, against measured ones."""

import json
from pathlib import Path

import pytest
import torch

from ..cards import events_on

pytestmark = pytest.mark.torch

MEASURED = Path(__file__).parents[3] / "benchmarks" / "kernels" / "h100-80gb_2.11+cu130_2026-11-28.jsonl"
CASES = [case for case in map(json.loads, MEASURED.read_text().splitlines()) if case.get("op") == "embedding"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dtype']}-{case['n']}")
def test_the_gradient_takes_what_was_measured(virtual_gpu, case):
    """For a table of 50257 x 768, block by block as on an H100 (torch 2.11+cu130, 2026-11-28)."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[case["dtype"]]
    indices = torch.zeros(case["n"], dtype=torch.int64, device="cuda")
    grad = torch.empty(case["n"], 768, device="cuda", dtype=dtype)
    with events_on(virtual_gpu) as events:
        _kept = torch.ops.aten.embedding_dense_backward(grad, indices, 50257, -1, False)

    assert case["backward"] == events


def test_a_small_table_is_added_to_atomically(virtual_gpu):
    """In float32, where its type is narrower: an H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""
    indices = torch.zeros(7, 512, dtype=torch.int64, device="cuda")
    grad = torch.empty(7, 512, 3, device="cuda", dtype=torch.float16)
    with events_on(virtual_gpu) as events:
        _kept = torch.ops.aten.embedding_dense_backward(grad, indices, 4, -1, False)

    size = 28_672
    sort, segments = [size, size, size, 75_263, -75_263, -size], [24, size, 8, size, 1279, -1279, -size]
    parts = [32, 32, 1279, -1279, 8, 2896, 2896, 48]
    assert [*sort, *segments, *parts, -48, -2896, -2896, -8, -32, -32, -8, -size, -size, -size] == events


def test_the_gradient_of_bags_is_sorted_however_few_there_are(virtual_gpu):
    """An H200 (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""
    table = torch.empty(5000, 64, device="cuda", requires_grad=True)
    indices = torch.zeros(100, 10, dtype=torch.int64, device="cuda")
    bags = torch.nn.functional.embedding_bag(indices, table)
    gradient = torch.ones_like(bags)
    with events_on(virtual_gpu) as events:
        bags.backward(gradient)

    sort, segments = [8000, 8000, 8000, 1, -1, -8000], [1_280_000, 8000, 8, 8000, 1279, -1279, -8000]
    assert [*sort, *segments, 8000, 8000, 1279, -1279, 8, 8800, 281_600] == events[:20]


def test_a_permuted_gradient_is_copied(virtual_gpu):
    """Position biases are permuted: T5's backward on an H100 first copies their gradient (t5-base-ckpt)."""
    table = torch.zeros(32, 12, device="cuda", requires_grad=True)
    buckets = torch.zeros(64, 64, dtype=torch.long, device="cuda")
    bias = torch.nn.functional.embedding(buckets, table).permute(2, 0, 1)
    grad = torch.ones(12, 64, 64, device="cuda")
    with events_on(virtual_gpu) as events:
        bias.backward(grad)

    assert events[0] == 64 * 64 * 12 * 4
