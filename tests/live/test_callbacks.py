"""The recording within trainings by other libraries' loops."""

import pytest
import torch

import peaksight
from peaksight.live.session import Session
from peaksight.live.watching import Watching
from peaksight.records.watched_file import read_watched

pytestmark = [pytest.mark.torch, pytest.mark.models]


def seen_in(directory):
    return [read_watched(path) for path in sorted(directory.glob("*.jsonl"))]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        return {"loss": self.linear(x).square().mean()}


def test_transformers(tmp_path):
    """A step is one of the optimizer, after its accumulation; what the Trainer logs is heard once."""
    from transformers import Trainer, TrainingArguments

    from peaksight.live.huggingface import WatchCallback

    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=3,
        logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    data = [{"x": torch.ones(4), "labels": 0} for _ in range(32)]
    callback = WatchCallback(directory=tmp_path / "seen", scalars=("loss",))
    Trainer(model=Model(), args=arguments, train_dataset=data, callbacks=[callback]).train()
    (watched,) = seen_in(tmp_path / "seen")

    assert [step.step for step in watched.steps] == [1, 2, 3]
    assert [(scalar.name, scalar.count) for scalar in watched.scalars] == [("loss", 3)]
    assert watched.end.exit_code == 0


@pytest.mark.parametrize("fails", [False, True])
def test_lightning(tmp_path, fails):
    """GIVEN a failure, THEN the record says which."""
    from lightning.pytorch import LightningModule, Trainer

    from peaksight.live.lightning import WatchCallback

    class Module(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            if fails and index == 2:
                raise RuntimeError("mine")
            return self.model(batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = Trainer(
        max_steps=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[WatchCallback(directory=tmp_path / "seen")],
    )  # fmt: skip
    data = torch.utils.data.DataLoader(torch.ones(16, 4), batch_size=2)
    if fails:
        with pytest.raises(RuntimeError, match="mine"):
            trainer.fit(Module(), data)
    else:
        trainer.fit(Module(), data)
    (watched,) = seen_in(tmp_path / "seen")

    assert len(watched.steps) == (2 if fails else 4)
    assert (watched.end.exit_code, watched.end.error) == ((1, "RuntimeError: mine") if fails else (0, ""))


def train(model, optimizer, num_steps):
    for _ in range(num_steps):
        optimizer.zero_grad()
        model(torch.ones(2, 4))["loss"].backward()
        optimizer.step()


def test_a_plain_loop(tmp_path, capsys):
    """GIVEN a `with` inside of another, THEN it is part of that, and what comes after both is not recorded."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with peaksight.watch(tmp_path / "seen"):
        train(model, optimizer, 2)
        with peaksight.watch(tmp_path / "inner"):
            train(model, optimizer, 1)
        train(model, optimizer, 1)
    train(model, optimizer, 5)
    (watched,) = seen_in(tmp_path / "seen")

    assert len(watched.steps) == 4
    assert not (tmp_path / "inner").exists()
    assert "watched already" in capsys.readouterr().err


def test_accelerate(tmp_path):
    """Whose loop is a plain one: a step ends when its optimizer has really stepped."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Model()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with peaksight.watch(tmp_path / "seen"):
        for _ in range(6):
            with accelerator.accumulate(model):
                accelerator.backward(model(torch.ones(2, 4))["loss"])
                optimizer.step()
                optimizer.zero_grad()

    assert len(seen_in(tmp_path / "seen")[0].steps) == 3


def test_a_training_that_failed_before(tmp_path):
    """GIVEN a callback that was never told of the end, THEN the next training has a record of its own."""
    session = Session(Watching(directory=tmp_path))
    session.begin()
    session.begin()
    session.end()

    assert [watched.end is not None for watched in seen_in(tmp_path)] == [True, True]
