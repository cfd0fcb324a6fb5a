"""Histories of whole runs: of one that a GPU recorded too, and of one that ran out of memory."""

import gzip
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

from peaksight.errors import StopSimulation
from peaksight.records import ScriptCommand
from peaksight.units import GIB, MIB
from peaksight.virtual_gpu.script import run_script

from .cards import card_of, card_with

pytestmark = pytest.mark.torch

TRUTH = Path(__file__).parents[2] / "benchmarks" / "truth"
record = torch.cuda.memory._record_memory_history


def trace():
    """The events recorded so far, but for the snapshots."""
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    return [event for event in events if event["action"] != "snapshot"]


def mebibytes(count):
    """A tensor of so many."""
    return torch.empty(count * MIB, dtype=torch.uint8, device="cuda")


def test_the_events_of_a_card(monkeypatch):
    """Training an LSTM for two steps: actions and sizes one after the other, as an H100 recorded them."""
    measured = json.loads(gzip.decompress((TRUTH / "traces" / "lstm.trace.json.gz").read_bytes()))
    monkeypatch.setattr(sys, "argv", ["misc.py", "--task", "lstm", "--batch", "64"])
    with card_of("h100-80gb", max_steps=2):
        record(context=None)
        with pytest.raises(StopSimulation):
            runpy.run_path(str(TRUTH / "scripts" / "misc.py"), run_name="__main__")
        events = [(event["action"], event["size"]) for event in trace()]
    while events[-1][0] != "alloc":  # a run that is stopped lets go of everything
        events.pop()

    assert len(events) > 500
    assert [(action, size) for action, _, size, _ in measured[: len(events)]] == events


SCRIPT = """
import torch

def make():
    return torch.empty(1000, device="cuda")

torch.cuda.memory._record_memory_history()
kept = make()
(event,) = [event for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == "alloc"]
print(*(frame["name"] for frame in event["frames"]), event["frames"][-1]["line"])
"""


def test_the_stack_of_a_script(virtual_gpu, tmp_path, capsys):
    """Ends at the script: nothing of what runs it is in there."""
    (tmp_path / "train.py").write_text(SCRIPT)

    run_script(ScriptCommand(target=str(tmp_path / "train.py")))

    assert "make <module> 8\n" == capsys.readouterr().out


def test_out_of_memory():
    """Segments are given back in vain, then it is told with what is free; `size` is that of the block."""
    with card_with(GIB):
        kept = mebibytes(600)
        mebibytes(100)
        record()
        with pytest.raises(torch.OutOfMemoryError):
            mebibytes(500)
        freed, failed = trace()

        assert ("segment_free", 100 * MIB) == (freed["action"], freed["size"])
        assert ("oom", 500 * MIB) == (failed["action"], failed["size"])
        assert torch.cuda.mem_get_info()[0] == failed["device_free"]
        assert "addr" not in failed
        assert ["mebibytes", "test_out_of_memory"] == [frame["name"] for frame in failed["frames"]][:2]
        assert "raise OutOfMemoryError # 500.0MiB requested" in torch.cuda._memory_viz.trace(
            torch.cuda.memory._snapshot()
        )
        assert kept.is_cuda


def test_observers_are_told_before_the_error():
    """A dump at the OOM is what they are for: with what was asked of the device, what it has, and what is free."""
    told = []

    def observe(device, segment_bytes, total_bytes, free_bytes):
        told.append((device, segment_bytes, total_bytes, free_bytes, torch.cuda.memory_allocated()))

    with card_with(GIB) as gpu:
        torch._C._cuda_attach_out_of_memory_observer(observe)
        kept = mebibytes(600)
        with pytest.raises(torch.OutOfMemoryError):
            mebibytes(499)

        assert [(0, 500 * MIB, gpu.room.card.total_bytes, 424 * MIB, 600 * MIB)] == told
        assert kept.is_cuda


def test_observers_are_told_what_is_allowed():
    """Under a memory fraction that is the total; the message names it too."""
    told = []
    with card_with(GIB) as gpu:
        torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: told.append(numbers))
        torch.cuda.set_per_process_memory_fraction(0.25)
        allowed = gpu.ledger.allocator.allowed_bytes
        with pytest.raises(torch.OutOfMemoryError, match="MiB allowed; "):
            mebibytes(500)

        assert int(0.25 * gpu.room.card.total_bytes) == allowed == told[0][2]
        assert 0.25 == torch.cuda.get_per_process_memory_fraction()


def test_resetting_the_counts_hides_no_retry():
    """The report counts those of a step, whatever the script does to its own counts."""
    with card_with(GIB) as gpu:
        mebibytes(600)
        mebibytes(700)
        torch.cuda.reset_accumulated_memory_stats()

        assert 0 == torch.cuda.memory_stats()["num_alloc_retries"]
        assert 1 == gpu.ledger.end_step(1).num_alloc_retries


def test_nothing_is_free_beyond_the_card():
    """In the run that shows what a job needs, the answers stay those of the card, and never below zero."""
    with card_with(GIB, max_failures=0):
        kept = mebibytes(3000)

        assert 0 == torch.cuda.mem_get_info()[0]
        assert kept.is_cuda


def test_settings_of_the_script_outlast_the_environments(monkeypatch):
    """Those of the environment come first, also where the script sets its own before it uses the card."""
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    with card_with(GIB) as gpu:
        assert "expandable_segments:True" == torch._C._accelerator_getAllocatorSettings()

        torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
        kept = mebibytes(30)

        assert not gpu.ledger.allocator.settings.expandable_segments
        assert "expandable_segments:False" == torch._C._accelerator_getAllocatorSettings()
        assert kept.is_cuda
