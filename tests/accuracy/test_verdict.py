"""The verdict against an H100 with limited memory: benchmarks/truth/capped.json, torch 2.11.0+cu130."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from helpers import allocation_of, capture_of
from peaksight.allocator import read_trace
from peaksight.attribution import first_failure
from peaksight.units import GIB, format_bytes

TRUTH = Path(__file__).parents[2] / "benchmarks" / "truth"
RUNS = json.loads((TRUTH / "capped.json").read_text())

pytestmark = pytest.mark.slow


@cache
def recorded(workload):
    """The allocations of a real unlimited run, as a capture."""
    allocations, alive = [], {}
    for tick, (action, address, num_bytes, stream) in enumerate(
        read_trace(TRUTH / "traces" / f"{workload}.trace.json.gz")
    ):
        if action == "alloc":
            alive[address] = len(allocations)
            allocations.append(allocation_of(num_bytes, born=tick, stream=stream))
        elif action == "free_completed" and address in alive:
            index = alive.pop(address)
            allocations[index] = replace(allocations[index], died=tick)
    return capture_of(*allocations)


def failure_of(run):
    return first_failure(recorded(run["id"].split("@")[0]), int(run["cap_gib"] * GIB))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["id"])
def test_fits_exactly_where_the_card_says_so(run):
    """All 80 limits of 12 workloads: 32 that fit, 48 that do not."""
    assert (failure_of(run) is None) == (run["error"] is None)


def test_the_failing_request_is_the_cards():
    """The size in PyTorch's message, in at least 45 of the 48."""
    failing = [run for run in RUNS if run["error"]]
    right = sum(
        format_bytes(failure_of(run).error.segment_bytes)
        == re.search(r"Tried to allocate ([\d.]+ \w+)", run["error"]["text"])[1]
        for run in failing
    )

    assert len(failing) == 48
    assert right >= 45
