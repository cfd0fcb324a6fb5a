"""A simulated snapshot has torch's keys and opens in torch's own viewer."""

import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.cuda import _memory_viz

from peaksight.units import MIB

from .cards import h100

pytestmark = pytest.mark.torch

SEGMENT = (
    "device address total_size allocated_size active_size requested_size stream segment_type segment_pool_id "
    "is_expandable frames blocks"
)
BLOCK = "address size requested_size state frames"
EVENT = "action addr size stream time_us compile_context user_metadata pool_id frames"


@pytest.fixture(scope="module")
def snapshot():
    """Of two steps of training, recorded from the start, with a dump of it."""
    with h100():
        torch.cuda.memory._record_memory_history()
        model = nn.Sequential(nn.Linear(1000, 1000), nn.Dropout(), nn.Linear(1000, 1000)).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(8, 1000, device="cuda")).sum().backward()
            optimizer.step()
        yield torch.cuda.memory._snapshot()


@pytest.mark.skipif(not hasattr(torch._C, "_cuda_memorySnapshot"), reason="torch was built without CUDA")
def test_keys_are_those_of_torch(snapshot):
    """At the top and among the settings: what the real function tells without a card."""
    code = "import torch, pickle, sys; sys.stdout.buffer.write(pickle.dumps(torch._C._cuda_memorySnapshot(None)))"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    real = pickle.loads(done.stdout)

    assert list(real) == list(snapshot)
    assert real["allocator_settings"] == snapshot["allocator_settings"]


def test_keys_of_the_parts(snapshot):
    """As `THCPModule_memorySnapshot` fills them."""
    segments, (trace,) = snapshot["segments"], snapshot["device_traces"]

    assert {SEGMENT} == {" ".join(segment) for segment in segments}
    assert {BLOCK} == {" ".join(block) for segment in segments for block in segment["blocks"]}
    assert {EVENT} == {" ".join(event) for event in trace}


def test_annotations(snapshot):
    """What torch itself annotates: the steps of the optimizer, one after the other."""
    steps = [told for told in snapshot["external_annotations"] if told["name"] == "Optimizer.step#AdamW.step"]

    assert ["START", "END"] * 2 == [told["stage"] for told in steps]
    assert {"name stage device time_us"} == {" ".join(told) for told in steps}


def test_sums(snapshot):
    """Blocks fill their segment one after the other, and add up to what it says."""
    for segment in snapshot["segments"]:
        blocks = segment["blocks"]
        ends = [block["address"] + block["size"] for block in blocks]
        used = [block for block in blocks if block["state"] == "active_allocated"]

        assert [segment["address"], *ends[:-1]] == [block["address"] for block in blocks]
        assert segment["address"] + segment["total_size"] == ends[-1]
        assert segment["allocated_size"] == segment["active_size"] == sum(block["size"] for block in used)
        assert segment["requested_size"] == sum(block["requested_size"] for block in used)


def test_events_lead_to_the_blocks(snapshot):
    """What was allocated and not freed is what is there."""
    alive = {}
    for event in snapshot["device_traces"][0]:
        if event["action"] == "alloc":
            assert event["addr"] not in alive
            alive[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            assert alive.pop(event["addr"]) == event["size"]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]

    assert alive == {b["address"]: b["requested_size"] for b in blocks if b["state"] == "active_allocated"}


def test_settings_and_mapped_ranges():
    """Expandable segments are told as the ranges that are mapped, the settings as they were given."""
    with h100():
        torch._C._accelerator_setAllocatorSettings("expandable_segments:True,max_split_size_mb:30")
        torch.cuda.memory._record_memory_history()
        kept = torch.empty(MIB, device="cuda")
        told = torch.cuda.memory._snapshot()
        (segment,), settings = told["segments"], told["allocator_settings"]

        assert (20 * MIB, True) == (segment["total_size"], segment["is_expandable"])
        assert ["segment_map", "alloc"] == [event["action"] for event in told["device_traces"][0]]
        assert 30 * MIB == settings["max_split_size"]
        assert "expandable_segments:True,max_split_size_mb:30" == settings["PYTORCH_CUDA_ALLOC_CONF"]
        assert kept.is_cuda


def test_which_snapshot(virtual_gpu):
    """Of a pool that is not there, and without events; arguments are checked as torch does."""
    kept = torch.empty(25, device="cuda")

    assert 1 == len(torch.cuda.memory_snapshot())
    assert [] == torch._C._cuda_memorySnapshot((0, 1))["segments"]
    assert [] == torch._C._cuda_memorySnapshot((0, 0, False))["device_traces"]
    assert kept.is_cuda
    for argument, message in [
        (3, "Expected tuple or None"),
        ((0,), "Expected tuple of size 2 or 3"),
        (("a", 0), "mempool_id elements must be integers"),
        ((0, 0, 1), "include_traces must be a boolean"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch._C._cuda_memorySnapshot(argument)


def test_texts_of_the_viewer(snapshot):
    """The summary, the trace and the flame graphs' lines name what happened."""
    trace = _memory_viz.trace(snapshot)
    lines = _memory_viz.memory(snapshot, format_flamegraph=str).splitlines()

    assert "cudaMalloc(" in trace
    assert "total_reserved" in _memory_viz.segsum(snapshot)
    assert any("active_allocated" in line and "adam.py" in line for line in lines)
    assert len(lines) == len(_memory_viz.segments(snapshot, format_flamegraph=str).splitlines())
    assert _memory_viz.compare([], snapshot["segments"], format_flamegraph=str).startswith("only_after;")


@pytest.mark.parametrize("command", ["trace_plot", "segment_plot"])
def test_pages_of_the_viewer(snapshot, tmp_path, command):
    """`python -m torch.cuda._memory_viz` makes a page of a dumped snapshot."""
    dump, page = tmp_path / "snapshot.pickle", tmp_path / "page.html"
    dump.write_bytes(pickle.dumps(snapshot))
    subprocess.run([sys.executable, "-m", "torch.cuda._memory_viz", command, str(dump), "-o", str(page)], check=True)

    assert "snapshot.pickle" in page.read_text()


def test_dump(virtual_gpu, tmp_path):
    """`_dump_snapshot` writes what `_snapshot` tells."""
    kept = torch.empty(25, device="cuda")
    torch.cuda.memory._dump_snapshot(str(tmp_path / "dump.pickle"))

    assert torch.cuda.memory._snapshot() == pickle.loads((tmp_path / "dump.pickle").read_bytes())
    assert kept.is_cuda


def test_equal_stacks_are_one_object(snapshot):
    """So that a dump of many events stays small."""
    stacks = [event["frames"] for event in snapshot["device_traces"][0]]

    assert len({id(stack) for stack in stacks}) < len(stacks) / 2
    assert len(pickle.dumps(stacks)) < 200 * len(stacks)
