"""A watched run on a virtual card, whose allocator counts as the real one does."""

import runpy

import pytest

from peaksight.live.watching import Watching, recording
from peaksight.records.watched_file import read_watched
from peaksight.units import MIB

from .cards import card_with

pytestmark = pytest.mark.torch

TRAIN = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())


def train(batch):
    loss = model(torch.randn(batch, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""


@pytest.fixture
def watched(tmp_path):
    """Runs what follows TRAIN on a card; its names, and what was recorded."""

    def run(code, usable_bytes=1024 * MIB):
        script = tmp_path / "train.py"
        script.write_text(TRAIN + code)
        with card_with(usable_bytes, script_dir=str(tmp_path)), recording(Watching(directory=tmp_path), ("train.py",)):
            names = runpy.run_path(str(script), run_name="__main__")
        (path,) = tmp_path.glob("*.jsonl")
        return names, read_watched(path)

    return run


PEAKS = """
peaks, highest = [], []
for batch in (64, 4096, 64, 2048):
    train(batch)
    highest.append(torch.cuda.max_memory_allocated())
for batch in (64, 4096, 64):
    torch.cuda.reset_peak_memory_stats()
    train(batch)
    peaks.append((torch.cuda.max_memory_allocated(), torch.accelerator.max_memory_reserved()))
"""


def test_the_script_sees_its_own_peaks(watched):
    """GIVEN a script that asks for peaks, THEN they are what they would be, and those of each step are recorded too."""
    names, seen = watched(PEAKS)
    peaks = [step.peak_allocated_bytes for step in seen.steps]

    assert peaks[4:] == [allocated for allocated, _ in names["peaks"]]
    assert [step.peak_reserved_bytes for step in seen.steps[4:]] == [reserved for _, reserved in names["peaks"]]
    assert names["highest"] == [peaks[0], peaks[1], peaks[1], peaks[1]]
    assert peaks[0] < peaks[3] < peaks[1]


LEAK = """
losses = []
for _ in range(24):
    losses.append(train(64))
    kept = torch.zeros(1 << 20, device="cuda")
    losses.append(kept)
"""


def test_a_leak_and_its_line(watched):
    """GIVEN 4 MiB more after every step, THEN that, the step at which the card is full, and the line are told."""
    _, seen = watched(LEAK)
    told = {event.kind: event.text for event in seen.events}

    assert "grows by 4.00 MiB a step" in told["growth"]
    assert told["growth-line"].startswith("what grows is allocated at train.py:18: 4.00 MiB a step")


RETRIES = """
for batch in range(20_000, 38_000, 3_000):
    train(batch)
"""


def test_retries(watched):
    """GIVEN batches that grow, each of which needs what was cached for the one before, THEN that is told."""
    _, seen = watched(RETRIES)

    assert sum(step.retries for step in seen.steps) >= 3
    assert [event.kind for event in seen.events] == ["retry", "thrash"]
