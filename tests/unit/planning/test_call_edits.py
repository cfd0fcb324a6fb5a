"""A plan's changes as arguments of calls: GIVEN a script of a library THEN each is made where that library takes it."""

from types import SimpleNamespace

import pytest

from helpers import allocation_of, capture_of, step_of
from peaksight.planning.writing import written
from peaksight.records import BatchFact, ScriptCommand
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

HEAD = """import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader
import lightning as L
from transformers import AutoModelForCausalLM, GPT2Config, TrainingArguments
import trl
"""
ACCELERATE = """
opt = torch.optim.AdamW(
    p,
)
valid = DataLoader(data, batch_size=16)
loader = DataLoader(data, batch_size={batch}, shuffle=True)
accelerator = Accelerator({given})
model, opt, loader = accelerator.prepare(model, opt, loader)
for batch in tqdm(loader):
    pass
"""
LIGHTNING = """
class Data(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.data, batch_size=self.batch, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.data, batch_size=32)
trainer = L.Trainer(max_steps=10, {given})
"""
FUSED = Change(kind="optimizer-implementation", parameters={"implementation": "fused"})
BF16 = Change(kind="autocast", parameters={"dtype": "bfloat16"})
SDPA = Change(kind="fused-attention", parameters={"implementation": "sdpa"})
PARTS = Change(kind="accelerate-accumulation", parameters={"parts": 2, "loaders": [0]})
LIGHTNING_PARTS = Change(kind="lightning-accumulation", parameters={"parts": 2})


def edits_of(folder, source, *changes):
    """The lines that the edits add, without spaces at their begin, and which changes are in the diff."""
    (folder / "train.py").write_text(HEAD + source)
    lines = (HEAD + source).splitlines()
    loop = next((number for number, line in enumerate(lines, 1) if line.startswith("for ")), 0)
    batches = [
        BatchFact(tick=step, step=step, loader=0, at=f"train.py:{loop}", batch_size=8, bytes=1, shapes="")
        for step in (1, 2)
    ]
    capture = capture_of(allocation_of(512, born=1), steps=(step_of(1, 0, 2), step_of(2, 2, 3)), batches=batches)
    optimizers = (SimpleNamespace(kind="AdamW"),)
    command = ScriptCommand(target=str(folder / "train.py"))
    situation = SimpleNamespace(command=command, optimizers=optimizers, capture=capture)
    candidate = Candidate(kinds=(), title="", slots=(), effect=Effect.NOISE, changes=changes)
    told, files = written(situation, candidate)
    added = [line[1:].strip() for line in files.diff().splitlines() if line[:1] == "+" and line[:3] != "+++"]
    return added, [each.in_diff for each in told]


def test_accelerate(tmp_path):
    """The loader of the loop, not that of the validation, and wherever another edit moves it."""
    added, in_diff = edits_of(tmp_path, ACCELERATE.format(batch=8, given=""), FUSED, PARTS, BF16)

    assert in_diff == [True, True, True]
    assert added == [
        "fused=True,",
        "loader = DataLoader(data, batch_size=4, shuffle=True)",
        'accelerator = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")',
    ]


@pytest.mark.parametrize(
    "batch, given",
    [("8", "gradient_accumulation_plugin=plugin"), ("9", ""), ("8", "**options"), ("a + b", "")],
)
def test_both_edits_or_none(tmp_path, batch, given):
    """A smaller batch without more of them would be another training."""
    assert edits_of(tmp_path, ACCELERATE.format(batch=batch, given=given), PARTS) == ([], [False])


def test_lightning(tmp_path):
    """The loader of the training, and what counts batches."""
    given = "accumulate_grad_batches=3, limit_train_batches=0.5, val_check_interval=100"
    added, _ = edits_of(tmp_path, LIGHTNING.format(given=given), LIGHTNING_PARTS, BF16)

    assert added == [
        "return DataLoader(self.data, batch_size=self.batch // 2, shuffle=True)",
        "trainer = L.Trainer(max_steps=10, accumulate_grad_batches=6, limit_train_batches=0.5, val_check_interval=200, "
        'precision="bf16-mixed")',
    ]


def test_two_loaders_that_may_be_meant(tmp_path):
    """None is changed."""
    loaders = "a, b = DataLoader(x, batch_size=4), DataLoader(y, batch_size=4)\nL.Trainer()\n"

    assert edits_of(tmp_path, loaders, LIGHTNING_PARTS) == ([], [False])


@pytest.mark.parametrize(
    "call, changes, after",
    [
        ("TrainingArguments('out')", (FUSED, BF16), "TrainingArguments('out', optim=\"adamw_torch_fused\", bf16=True)"),
        ("TrainingArguments(optim='adafactor')", (FUSED,), None),
        ("trl.SFTConfig(bf16=False)", (BF16,), "trl.SFTConfig(bf16=True)"),
        ("AutoModelForCausalLM.from_pretrained('x')", (SDPA,),
         "AutoModelForCausalLM.from_pretrained('x', attn_implementation=\"sdpa\")"),
        ("GPT2Config(attn_implementation='eager')", (SDPA,), 'GPT2Config(attn_implementation="sdpa")'),
        ("GPT2Config(n_layer=2)", (SDPA,), None),
    ],
)  # fmt: skip
def test_an_argument(tmp_path, call, changes, after):
    """Of transformers and what builds on it; a choice of the person's that means something else stays."""
    added, in_diff = edits_of(tmp_path, f"{call}\n", *changes)

    assert added == ([after] if after else [])
    assert all(in_diff) is bool(after)
