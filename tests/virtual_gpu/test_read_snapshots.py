"""What is read from the snapshot of a run is what the run itself saw; and torch's own viewer agrees."""

import gc
import pickle
import runpy
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from torch.cuda import _memory_viz

from peaksight.attribution import build_recording_report, live_at_peak
from peaksight.postmortem.snapshots import read_snapshot
from peaksight.records import Category, Phase
from peaksight.units import GIB, MIB

from .cards import card_with, h100

pytestmark = pytest.mark.torch

TRAIN = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


model = nn.Sequential(*(Block(500) for _ in range(3))).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    x = torch.randn(640, 500, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


SETTINGS = ("", "expandable_segments:True", "roundup_power2_divisions:4,max_split_size_mb:30")


@pytest.fixture(scope="module", params=SETTINGS)
def run(request, tmp_path_factory):
    """Three steps, as the run saw them and as their snapshot tells them."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "train.py").write_text(TRAIN)
    with h100(script_dir=str(folder)) as gpu:
        torch._C._accelerator_setAllocatorSettings(request.param)
        torch.cuda.memory._record_memory_history()
        script = runpy.run_path(str(folder / "train.py"), run_name="__main__")
        gc.collect()  # what is left in cycles would die between the two
        snapshot, seen = torch.cuda.memory._snapshot(), seen_by(gpu.ledger)
    assert script["model"]
    (folder / "snapshot.pickle").write_bytes(pickle.dumps(snapshot))
    (recording,) = read_snapshot(folder / "snapshot.pickle")
    return SimpleNamespace(seen=seen, read=recording.capture, snapshot=snapshot)


def seen_by(ledger):
    """What a capture has of blocks and peaks."""
    return SimpleNamespace(
        allocations=tuple(birth.record() for birth in ledger.births),
        steps=tuple(ledger.steps),
        peak_tick=ledger.peaks.tick,
        peak_allocated_bytes=ledger.peaks.allocated_bytes,
        peak_reserved_bytes=ledger.peaks.reserved_bytes,
        peak_requested_bytes=ledger.peaks.requested_bytes,
        peak_active_bytes=ledger.peaks.active_bytes,
        holds=(),
    )


def held(capture, *names):
    """The bytes alive at the peak by the fields `names`, without the lines that a backward pass of a card has not."""
    found = Counter()
    for holder in live_at_peak(capture):
        source = "" if holder.phase is Phase.BACKWARD else holder.source
        found[tuple(source if name == "source" else getattr(holder, name) for name in names)] += holder.bytes
    return found


def test_the_peaks(run):
    """All four, of the run and of each step, to the byte."""
    names = ("peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes", "peak_active_bytes")
    steps = [
        [(step.peak_allocated_bytes, step.peak_reserved_bytes) for step in capture.steps if step.complete]
        for capture in (run.seen, run.read)
    ]

    assert [getattr(run.seen, name) for name in names] == [getattr(run.read, name) for name in names]
    assert steps[0] == steps[1]
    assert len(steps[0]) == 3


def test_every_block(run):
    """In order, with its size, as asked for and as handed out, and its line."""
    blocks = [
        [
            (a.requested_bytes, a.allocated_bytes, a.died is None, a.phase is Phase.BACKWARD or a.source)
            for a in capture.allocations
        ]
        for capture in (run.seen, run.read)
    ]

    assert blocks[0] == blocks[1]


@pytest.mark.parametrize("names", [("source",), ("category",), ("source", "category", "phase", "step")])
def test_the_live_set(run, names):
    """By line, by category, and by both with the moment of birth."""
    assert held(run.seen, *names) == held(run.read, *names)
    assert held(run.read, "category")[Category.OTHER,] == 0


def test_the_sums_of_torch(run):
    """What `torch.cuda._memory_viz` adds up for the same file."""
    final = [a for a in run.read.allocations if a.died is None]
    summary = _memory_viz.segsum(run.snapshot).splitlines()
    memory = _memory_viz.memory(run.snapshot, format_flamegraph=str).splitlines()
    in_use = [int(line.rpartition(" ")[2]) for line in memory if "active_allocated" in line and "<gaps>" not in line]

    assert sum(a.requested_bytes for a in final) == sum(in_use)
    assert len(final) == len(in_use)
    assert f"total_allocated: {_memory_viz.Bytes(sum(a.requested_bytes for a in final))}" in summary
    assert f"total_reserved: {_memory_viz.Bytes(run.read.peak_reserved_bytes)}" in summary
    assert f"{len(run.snapshot['device_traces'][0])} entries" in _memory_viz.trace(run.snapshot).splitlines()


def test_a_ring_that_lost_its_beginning(run, tmp_path):
    """Of the last events alone the peak is that of their part, and what is alive still adds up."""
    (events,) = run.snapshot["device_traces"]
    part = run.snapshot | {"device_traces": [events[len(events) // 2 :]]}
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(part))
    (recording,) = read_snapshot(tmp_path / "snapshot.pickle")
    last_step = run.seen.steps[2]

    assert recording.num_before > 0
    assert recording.capture.peak_allocated_bytes == last_step.peak_allocated_bytes
    assert recording.capture.peak_reserved_bytes == last_step.peak_reserved_bytes
    assert sum(held(recording.capture, "source").values()) == last_step.peak_allocated_bytes
    assert held(recording.capture, "category")[Category.PARAMETER,] == held(run.seen, "category")[Category.PARAMETER,]


def test_a_run_that_fails(tmp_path):
    """The request, and what was there, as an observer finds it."""
    path = tmp_path / "oom.pickle"
    with card_with(GIB):
        torch.cuda.memory._record_memory_history()
        torch._C._cuda_attach_out_of_memory_observer(lambda *_: torch.cuda.memory._dump_snapshot(str(path)))
        kept = [torch.empty(3 * MIB, dtype=torch.uint8, device="cuda") for _ in range(100)]
        del kept[::2]
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(GIB - 100 * MIB, dtype=torch.uint8, device="cuda")
        sizes = torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]
        (recording,) = read_snapshot(path)
    report = build_recording_report([recording], path.name)

    assert sizes == (report.oom.allocated_bytes, report.oom.reserved_bytes, report.oom.free_bytes)
    assert (GIB - 100 * MIB, False) == (report.oom.requested_bytes, report.fits)
    assert sizes[1] - sizes[0] == report.fragmentation.unused_bytes == report.fragmentation.inactive_split_bytes
    assert sum(pin.alone_bytes for pin in report.fragmentation.pins) == report.fragmentation.unused_bytes
