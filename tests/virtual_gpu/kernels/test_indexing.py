"""The temporaries of an embedding's gradient."""

import json
from pathlib import Path

import pytest
import torch

from peaksight.records import Role

pytestmark = pytest.mark.torch

MEASURED = Path(__file__).parents[3] / "benchmarks" / "kernels" / "h100-80gb_2.11+cu130_2026-11-28.jsonl"
CASES = [case for case in map(json.loads, MEASURED.read_text().splitlines()) if case.get("op") == "embedding"]


def peak_of(events):
    """The largest sum of a run of `events`, bytes taken above zero and freed below."""
    now = peak = 0
    for event in events:
        now += event
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dtype']}-{case['n']}")
def test_peak_of_the_backward_is_the_measured_one(virtual_gpu, case):
    """The gradient of a 50257 x 768 embedding peaks as on an H100 (torch 2.11+cu130, 2026-11-28)."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[case["dtype"]]
    weight = torch.nn.Embedding(50257, 768, device="cuda", dtype=dtype).weight
    indices = torch.randint(0, 50257, (case["n"],), device="cuda")
    grad = torch.empty(case["n"], 768, device="cuda", dtype=dtype)
    first = len(virtual_gpu.ledger.births)
    torch.ops.aten.embedding_dense_backward(grad, indices, weight.shape[0], -1, False)

    births = virtual_gpu.ledger.births[first:]

    assert [birth.role for birth in births].count(Role.WORKSPACE) == (0 if case["n"] <= 3072 else 9)
    assert abs(sum(birth.requested_bytes for birth in births) - peak_of(case["backward"])) <= 8
