"""What a script does after its training: GIVEN a loop that ends at the steady state, THEN the report has it, too."""

import json

import pytest

from helpers_commands import peaksight

pytestmark = pytest.mark.torch

TRAINING = """\
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range({steps}):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
EVALUATION = """\
with torch.no_grad():
    model(torch.randn(100_000, 512, device="cuda"))
"""
EVALUATION_BYTES = 100_000 * 512 * 4


def run(tmp_path, steps, after):
    """The exit code, the report and what was said of a training of `steps` and what comes `after` it."""
    (tmp_path / "train.py").write_text(TRAINING.format(steps=steps) + after)
    done = peaksight("run", "--gpu", "h100-80gb", "--json", "-", "train.py", cwd=tmp_path)
    return done.returncode, json.loads(done.stdout), done.stderr


def test_an_evaluation_after_the_last_step(tmp_path):
    """GIVEN three steps, THEN the evaluation is the peak, and no line is left out."""
    code, report, _ = run(tmp_path, 3, EVALUATION)

    assert (code, report["finished"], report["not_reached"]) == (0, "script", [])
    assert report["peak"]["allocated_bytes"] > EVALUATION_BYTES
    assert report["peak"]["phase"] == "forward"


def test_an_evaluation_after_some_more_steps(tmp_path):
    """GIVEN ten steps, of which three show all, THEN the others run too, for the evaluation behind them."""
    _, report, _ = run(tmp_path, 10, EVALUATION)

    assert (report["finished"], report["not_reached"]) == ("script", [])
    assert report["peak"]["allocated_bytes"] > EVALUATION_BYTES


TRAINER = """\
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

SIZES = dict(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)

class Words(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, place):
        return {"input_ids": torch.full((8,), place % 64), "labels": torch.tensor(place % 2)}

arguments = TrainingArguments(
    "out", max_steps=100, eval_strategy="steps", eval_steps=5, per_device_train_batch_size=8,
    per_device_eval_batch_size=512, report_to=[]
)
model = BertForSequenceClassification(BertConfig(**SIZES))
Trainer(model, arguments, train_dataset=Words(), eval_dataset=Words()).train()
"""
LIGHTNING = """\
import lightning
import torch
from torch.utils.data import DataLoader

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def training_step(self, batch):
        return self.linear(batch).sum()

    def validation_step(self, batch):
        self.linear(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

trainer = lightning.Trainer(
    accelerator="gpu", devices=1, max_epochs=9, num_sanity_val_steps=0, logger=False, enable_checkpointing=False
)
trainer.fit(Model(), DataLoader(torch.zeros(40, 64), 8), DataLoader(torch.zeros(4096, 64), 4096))
"""


@pytest.mark.models
@pytest.mark.parametrize("script", [TRAINER, LIGHTNING], ids=["transformers", "lightning"])
def test_an_evaluation_that_a_trainer_makes(tmp_path, script):
    """GIVEN it comes after five steps, THEN it is the peak."""
    (tmp_path / "fit.py").write_text(script)
    done = peaksight("run", "--gpu", "h100-80gb", "--json", "-", "fit.py", cwd=tmp_path)

    assert json.loads(done.stdout)["peak"]["phase"] == "evaluation"


def test_a_long_training_is_stopped_before(tmp_path):
    """GIVEN twenty thousand steps, THEN the evaluation is named as not reached."""
    code, report, _ = run(tmp_path, 20_000, EVALUATION)

    assert (code, report["finished"]) == (0, "steady")
    assert report["not_reached"]
    assert report["peak"]["allocated_bytes"] < EVALUATION_BYTES


def test_a_failure_after_the_training(tmp_path):
    """GIVEN a script that fails there, THEN its training still has an answer, which says so."""
    code, report, said = run(tmp_path, 3, "raise ValueError('no metric')\n")

    assert "ValueError: no metric" in said
    assert (code, report["fits"], report["finished"], report["script_exit"]) == (0, True, "steady", 0)
    assert "after-training" in [note["slug"] for note in report["not_simulated"]]
