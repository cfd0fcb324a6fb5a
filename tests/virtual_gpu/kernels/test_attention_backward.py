"""The accumulators of attention's backward, against an H100."""

import json
from pathlib import Path

import pytest
import torch

from peaksight.virtual_gpu.kernels.attention_backward import cudnn_bytes, efficient_temporaries, flash_bytes

pytestmark = pytest.mark.torch

MEASURED = Path(__file__).parents[3] / "benchmarks" / "kernels" / "h100-80gb_2.11+cu130_2026-11-28.jsonl"
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
CASES = [
    case
    for case in map(json.loads, MEASURED.read_text().splitlines())
    if case.get("op") == "sdpa" and "error" not in case and case["backend"] in ("cudnn", "flash", "efficient")
]


def accumulators(case):
    """The largest group of blocks that the rule gives for `case`."""
    query = torch.empty(case["shape"], dtype=DTYPES[case["dtype"]], device="meta")
    if case["backend"] == "cudnn":
        return [cudnn_bytes(query, query)]
    return (
        list(flash_bytes(query))
        if case["backend"] == "flash"
        else [size for size in efficient_temporaries(query, query) if size > 0][-2:]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['backend']}-{c['dtype']}-{c['shape']}-{c['kind']}")
def test_accumulators_are_the_measured_ones(case):
    """Every accumulator of the rule is among the blocks that the card took (torch 2.11+cu130, 2026-11-28)."""
    taken = [event for event in case["backward"] if event > 0]

    assert set(accumulators(case)) <= set(taken)


def test_grouped_heads():
    """cuDNN with 16 query and 4 key heads took 16,908,544 bytes: a gradient of key and value for each query head."""
    query = torch.empty(2, 16, 1024, 64, dtype=torch.bfloat16, device="meta")
    key = torch.empty(2, 4, 1024, 64, dtype=torch.bfloat16, device="meta")

    assert cudnn_bytes(query, key) == 16_908_544
