"""Other tools on the measured workloads: the hand-over of a training step, and the page."""

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.workloads import workloads
from benchmarks.peers import mem_tracker, settings, worker
from benchmarks.peers.answers import Answer, keep, read_answers
from benchmarks.peers.fake_modules import convert_modules, to_meta
from benchmarks.peers.first_step import first_step_of
from benchmarks.peers.page import Result, Results, render_page
from benchmarks.peers.tools import PEERS
from helpers import peak_of, report_of

pytestmark = pytest.mark.torch


def workload_of(name):
    """One of benchmarks/truth."""
    return next(w for w in workloads() if w.name == name)


@pytest.fixture
def _here(monkeypatch):
    """Scripts run in their own folder, and this goes back."""
    monkeypatch.chdir(".")


class Tied(nn.Module):
    """Two names of one weight."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight


def test_fake_modules_are_converted_and_stay_tied():
    """`to` works on fake parameters, and so does the copy to the meta device."""
    with FakeTensorMode(), convert_modules():
        model = Tied().to(torch.bfloat16)

    assert model.b.weight is model.a.weight
    assert model.a.weight.dtype is torch.bfloat16
    assert to_meta(model).b.weight is model.a.weight
    assert type(model.a.weight) is nn.Parameter and model.a.weight.device.type == "meta"


@pytest.mark.usefixtures("_here")
def test_a_script_hands_over_its_first_step():
    """Model, optimizer and batch, with none of its steps made."""
    step = first_step_of(workload_of("lstm"))

    assert type(step.model).__name__ == "Tagger"
    assert step.batch is not None and step.batch.shape == (64, 256)
    assert (settings.batch_size(step), settings.sequence_length(step), settings.image_size(step)) == (64, 256, None)
    assert settings.optimizer_name(step, momentum="-momentum") == "adam"
    assert not step.optimizers[0].state


@pytest.mark.usefixtures("_here")
def test_mem_tracker_sees_every_step_of_a_script():
    """Parameters, gradients and both moments of Adam exist in the second step only."""
    workload = workload_of("lstm")
    parameter_bytes = sum(p.nbytes for p in first_step_of(workload).model.parameters())

    assert 4 * parameter_bytes < mem_tracker.predict(workload, first_step_of(workload)) < 20 * parameter_bytes


def test_an_answer_may_take_so_much_of_the_processor(monkeypatch):
    """A peer that works on and on is ended after the seconds it has, however busy the machine is."""

    def answer_never(*asked):
        while True:
            pass

    monkeypatch.setattr(worker, "_answer", answer_never)

    answer = worker._forked("mem_tracker", workload_of("lstm"), None, 1)

    assert answer == Answer(reason="no answer in 1 s of CPU")


def test_answers_are_kept(tmp_path):
    """An interrupted run reads what it was told before."""
    told = {"alloc": Answer(predicted_bytes=5, cpu_seconds=1.5), "kitsune": Answer(reason="no idea")}
    assert not read_answers(tmp_path / "answers")

    keep(told, "lstm", tmp_path / "answers")
    keep({}, "eigh", tmp_path / "answers")

    assert read_answers(tmp_path / "answers") == {"lstm": told, "eigh": {}}


def test_the_page_tells_errors_and_why_there_is_no_number():
    """One peer is right, the others have reasons."""
    workload = workload_of("lstm")
    peak = peak_of(workload.measured["peak_allocated"], reserved_bytes=workload.measured["peak_reserved"])
    refused = {peer.module: Answer(reason="no idea", is_applicable=False) for peer in PEERS}
    answered = {peer.module: Answer(predicted_bytes=round(1.1 * workload.measured[peer.measured])) for peer in PEERS}
    prediction = Prediction(workload=workload, report=report_of(peak=peak), failure="", seconds=1.0)
    page = render_page(
        Results([Result(prediction=prediction, answers=answered | {"alloc": refused["alloc"]})]),
        {peer.package: "1.0" for peer in PEERS},
    )

    assert "| MemTracker, allocated     |  1 of 1 |       10.00% |" in page
    assert "| alloc, reserved           |  0 of 1 |" in page
    assert "- lstm, alloc: not applicable, no idea" in page
