"""Only the script's own process has the card."""

import multiprocessing

import pytest
import torch

from peaksight.virtual_gpu.script import Scratch

from .cards import h100

pytestmark = pytest.mark.torch


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)


def use_card():
    """What a process that trains does first."""
    return torch.ones(1).cuda().shape


def step_often():
    """Training on the CPU, for longer than a run does."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight])
    for _ in range(30):
        optimizer.step()
    return 30


def outcome(function, method):
    """What `function` returned in a process started by `method`, or its error."""
    with multiprocessing.get_context(method).Pool(1) as pool:
        try:
            return pool.apply_async(function).get(timeout=600)
        except RuntimeError as error:
            return str(error)


def notes(scratch):
    """What the report says of other processes."""
    return [(note.what, note.bytes) for note in scratch.notes() if note.slug == "other-process"]


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_process_that_uses_the_card(method, home):
    """It fails, and the report names it."""
    with Scratch() as scratch, h100() as gpu:
        error = outcome(use_card, method)

    assert error.startswith("only the script's own process is simulated")
    assert [] == gpu.ledger.births
    ((what, num_bytes),) = notes(scratch)
    assert "PoolWorker" in what
    assert num_bytes is None


def test_a_fork_after_the_card_was_used(home):
    """It fails as on a real card, and nothing is left unsaid."""
    with Scratch() as scratch, h100():
        use_card()
        error = outcome(use_card, "fork")

    assert error.startswith("Cannot re-initialize CUDA in forked subprocess.")
    assert [] == notes(scratch)


def test_a_fork_that_leaves_the_card_alone(home):
    """It runs as ever, and its steps are not the run's."""
    with Scratch() as scratch, h100(max_steps=1) as gpu:
        assert 30 == outcome(step_often, "fork")
        use_card()

    assert [] == notes(scratch)
    assert 1 == len(gpu.ledger.births)
