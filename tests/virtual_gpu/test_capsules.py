"""The OOM capsule of a script on a virtual card, which raises torch's own errors and tells torch's own snapshots."""

import gc
import runpy

import pytest
import torch

from peaksight.attribution import build_recording_report
from peaksight.live.watching import Watching, recording
from peaksight.postmortem.capsules import read_capsule
from peaksight.records import Category, Phase
from peaksight.records.capsule import Sign
from peaksight.units import MIB

from .cards import card_with

pytestmark = pytest.mark.torch

TRAIN = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(500, 2000), nn.Linear(2000, 500)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


model = nn.Sequential(*(Block() for _ in range(2))).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())


def train(batch):
    loss = model(torch.randn(batch, 500, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def run(*batches):
    for batch in batches:
        train(batch)
"""


@pytest.fixture
def watched(tmp_path):
    """Runs what follows TRAIN on a card of 600 MiB; its error, and the capsules."""

    def run(code, usable_bytes=600 * MIB):
        script = tmp_path / "train.py"
        script.write_text(TRAIN + code)
        error = None
        with (
            card_with(usable_bytes, script_dir=str(tmp_path)),
            recording(Watching(directory=tmp_path / "seen"), (str(script),)) as recorder,
        ):
            try:
                runpy.run_path(str(script), run_name="__main__")
            except Exception as caught:
                error = caught
                recorder.failed(caught)
            recorder.end(1 if error else 0)
            gc.collect()
        return error, [read_capsule(path) for path in sorted((tmp_path / "seen").glob("*.capsule"))]

    return run


def test_a_capsule(watched):
    """GIVEN a batch that does not fit in step 3, THEN the failure, its line, its module and what holds the card."""
    error, (opened,) = watched("run(64, 64, 64_000)\n")
    capsule, failure = opened.capsule, opened.capsule.failure
    report = build_recording_report(opened.recordings, capsule.file)

    assert type(error).__name__ == "OutOfMemoryError"
    assert (capsule.is_whole, capsule.left_out, failure.sign, failure.step) == (True, False, Sign.ALLOCATOR, 3)
    assert [step.step for step in capsule.steps] == [1, 2]
    assert failure.modules[:2] == ("Sequential", "Sequential.0")
    assert (report.oom.at, report.oom.phase, report.oom.step) == ("train.py:12", Phase.FORWARD, 3)
    assert (report.oom.requested_bytes, failure.requested_bytes) == (64_000 * 2000 * 4, 490 * MIB)  # and its segment
    assert sum(holder.bytes for holder in report.oom.live) == report.oom.allocated_bytes
    named = {holder.category: holder.module for holder in report.oom.live if holder.module == "Sequential.1.up"}
    assert {Category.PARAMETER, Category.OPTIMIZER_STATE} <= set(named)
    assert capsule.ending.is_out_of_memory
    assert "Tried to allocate 490.00 MiB" in capsule.ending.message
    assert capsule.holders[0].bytes >= capsule.holders[-1].bytes > 0


CAUGHT = """
for batch in (64, 64_000, 64, 64):
    try:
        train(batch)
    except torch.OutOfMemoryError:
        optimizer.zero_grad()
"""


def test_a_failure_that_the_script_gets_over(watched):
    """THEN it has a capsule all the same, which says that the training went on to its end."""
    error, (opened,) = watched(CAUGHT)
    report = build_recording_report(opened.recordings, opened.capsule.file)

    assert (error, opened.capsule.ending.exit_code, opened.capsule.ending.error) == (None, 0, "")
    assert (report.fits, report.oom.step) == (None, 2)


IN_BACKWARD = """
class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.expand(400_000, *gradient.shape).contiguous().sum(0)


def lose():
    Wide.apply(model(torch.ones(4, 500, device="cuda"))).sum().backward()


try:
    lose()
except RuntimeError as error:
    raise ValueError("the loss is lost") from error
"""


def test_inside_of_another_error(watched):
    """The allocator has told of it before; of a disguise the error's own frames tell where it was."""
    error, (opened,) = watched(IN_BACKWARD)

    assert type(error) is ValueError
    assert opened.capsule.ending.is_out_of_memory
    assert opened.at == "train.py:37"

    disguised = "def multiply():\n    raise RuntimeError('CUBLAS_STATUS_ALLOC_FAILED')\n\n\nrun(64)\nmultiply()\n"
    error, found = watched(disguised)
    (opened,) = [each for each in found if each.capsule.failure.sign is Sign.CUBLAS]

    assert opened.capsule.failure.requested_bytes is None
    assert opened.at == "train.py:30"
    assert opened.recordings[0].capture.failures[-1].step == 2


def test_the_history_is_ours_only_while_we_watch(tmp_path):
    """One that the script starts meanwhile is its own, and goes on."""
    for started_by_script in (False, True):
        with card_with(600 * MIB):
            is_recorded = torch._C._cuda_isHistoryEnabled
            with recording(Watching(directory=tmp_path), ("train.py",)):
                assert is_recorded()
                if started_by_script:
                    torch.cuda.memory._record_memory_history(max_entries=10)
            assert is_recorded() is started_by_script


def test_without_a_history(watched):
    """GIVEN a script that switches it off, THEN what is alive, whose parameters are named, and where it failed."""
    error, (opened,) = watched("torch.cuda.memory._record_memory_history(None)\nrun(64, 64, 64_000)\n")
    report = build_recording_report(opened.recordings, opened.capsule.file)

    assert type(error).__name__ == "OutOfMemoryError"
    assert (report.num_events, report.fits, report.oom.step) == (0, False, 3)
    assert ("train.py:12", Phase.FORWARD) == (opened.at, report.oom.phase)
    assert report.oom.allocated_bytes == opened.capsule.failure.card.allocated_bytes
    assert sum(holder.bytes for holder in report.oom.live) == report.oom.allocated_bytes
    assert {"Sequential.1.up", "Sequential.0.down"} <= {holder.module for holder in report.oom.live}
