"""Frameworks that resume: the state of the optimizer comes to the card by their own code."""

import logging

import pytest
import torch
from torch import nn

from peaksight.records import Role

from .cards import by_role

pytestmark = [pytest.mark.torch, pytest.mark.models]

WIDTH = 256
SAVED_STEPS, STEPS = 2, 4
MODEL_BYTES = (WIDTH * WIDTH + WIDTH) * 4


def batches():
    """Rows to learn from, enough for all steps."""
    rows = torch.utils.data.TensorDataset(torch.ones(4 * STEPS, WIDTH))
    return torch.utils.data.DataLoader(rows, batch_size=4)


def lightning_run(steps, accelerator, **options):
    """Fit a linear layer with Lightning up to the step `steps`; gives the trainer."""
    lightning = pytest.importorskip("lightning")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Linear(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(WIDTH, WIDTH)

        def training_step(self, batch, index):
            return self.linear(batch[0]).sum()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    quiet = dict.fromkeys(("enable_progress_bar", "logger", "enable_checkpointing", "enable_model_summary"), False)
    trainer = lightning.Trainer(max_steps=steps, max_epochs=-1, accelerator=accelerator, devices=1, **quiet)
    trainer.fit(Linear(), batches(), **options)
    return trainer


@pytest.fixture(scope="module")
def lightning_checkpoint(tmp_path_factory):
    """A real checkpoint after two steps on the CPU."""
    path = tmp_path_factory.mktemp("lightning") / "two.ckpt"
    lightning_run(SAVED_STEPS, "cpu").save_checkpoint(path)
    return path


@pytest.mark.filterwarnings("ignore")
def test_lightning(lightning_checkpoint, virtual_gpu):
    """`ckpt_path` restores the step and the optimizer, which leaves the card at the end."""
    trainer = lightning_run(STEPS, "gpu", ckpt_path=lightning_checkpoint)
    (optimizer,) = trainer.optimizers

    assert STEPS == trainer.global_step
    assert {float(STEPS)} == {state["step"].item() for state in optimizer.state.values()}
    assert 2 * MODEL_BYTES == sum(
        b.requested_bytes for b in virtual_gpu.ledger.births if b.role is Role.OPTIMIZER_STATE
    )


class Regression(nn.Module):
    """A model as Trainer wants it: it returns its loss."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, row):
        return {"loss": self.linear(row).sum()}


def transformers_run(directory, steps, *, use_cpu, **options):
    """Train with transformers' Trainer up to the step `steps`; gives the trainer."""
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(
        directory, max_steps=steps, save_steps=SAVED_STEPS, use_cpu=use_cpu, report_to=[], disable_tqdm=True
    )
    rows = [{"row": torch.ones(WIDTH)} for _ in range(8 * STEPS)]
    trainer = transformers.Trainer(model=Regression(), args=arguments, train_dataset=rows)
    trainer.train(**options)
    return trainer


@pytest.fixture(scope="module")
def trainer_directory(tmp_path_factory):
    """The output directory of a real Trainer after two steps on the CPU."""
    directory = tmp_path_factory.mktemp("trainer")
    transformers_run(directory, SAVED_STEPS, use_cpu=True)
    return directory


@pytest.mark.filterwarnings("ignore")
def test_trainer(trainer_directory, virtual_gpu):
    """`resume_from_checkpoint=True` restores the step, the model and the optimizer, and saves again."""
    trainer = transformers_run(trainer_directory, STEPS, use_cpu=False, resume_from_checkpoint=True)
    optimizer = trainer.optimizer.optimizer

    assert STEPS == trainer.state.global_step
    assert all(state["exp_avg"].is_cuda for state in optimizer.state.values())
    assert 2 * MODEL_BYTES <= by_role(virtual_gpu, Role.OPTIMIZER_STATE)
    assert (trainer_directory / f"checkpoint-{STEPS}" / "optimizer.pt").stat().st_size < MODEL_BYTES
