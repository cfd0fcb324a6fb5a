"""Smaller batches with more accumulation in libraries that accumulate: the same weights in the end, up to rounding."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.models


def samples():
    """The last batch of an epoch has 2 of 4."""
    torch.manual_seed(1)
    return torch.randn(10, 6), torch.randint(0, 3, (10,))


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def with_accelerate(sizes, **options):
    """Two epochs of a loop as in accelerate's guide; returns how often the optimizer stepped."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState, GradientState

    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    accelerator = Accelerator(cpu=True, **options)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    loader = DataLoader(TensorDataset(*samples()), batch_size=4, shuffle=True, generator=torch.Generator())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    steps = 0
    for _ in range(2):
        for inputs, targets in loader:
            sizes.append(len(inputs))
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.cross_entropy(model(inputs), targets))
                optimizer.step()
                steps += accelerator.sync_gradients
                optimizer.zero_grad()
    return model, steps


def with_lightning(sizes, **options):
    """Two epochs, with a validation that reads its loader first."""
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = make_model()

        def training_step(self, batch, index):
            sizes.append(len(batch[0]))
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, index):
            assert len(batch[0]) in (4, 2)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

    data = TensorDataset(*samples())
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    module = Module()
    loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator())
    trainer.fit(module, loader, DataLoader(data, batch_size=4))
    return module.net, trainer.global_step


def with_trainer(sizes, tmp_path, **options):
    """Two epochs of a small GPT-2 without dropout, whose labels leave out another number of positions in each row."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    config = GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    model = GPT2LMHeadModel(config)
    model.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    ids = torch.randint(0, 32, (10, 8))
    labels = torch.where(torch.arange(8) < torch.arange(10)[:, None] % 7, -100, ids)
    rows = [{"input_ids": row, "labels": label} for row, label in zip(ids, labels, strict=True)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4,
        num_train_epochs=2,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
    trainer.train()
    return model, trainer.state.global_step


def assert_same(run, change, **options):
    """Trained with and without `change`: as many steps, the same samples, the same weights, smaller batches."""
    sizes, small = [], []
    model, steps = run(sizes, **options)
    with Patches() as patches:
        applied = apply_changes([change], patches)
        other, small_steps = run(small, **options)

    assert applied.without_effect() == ()
    assert small_steps == steps
    assert sum(small) == sum(sizes)
    assert max(small) == 2
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 2])
def test_accelerate(steps):
    """Whatever it accumulates already."""
    change = Change(kind="accelerate-accumulation", parameters={"parts": 2, "loaders": [0]})

    assert_same(with_accelerate, change, gradient_accumulation_steps=steps)


@pytest.mark.parametrize("options", [{}, {"accumulate_grad_batches": 2}, {"limit_train_batches": 2}])
def test_lightning(options):
    """Of the training loader only; a number of batches to stop after is one of whole batches."""
    assert_same(with_lightning, Change(kind="lightning-accumulation", parameters={"parts": 2}), **options)


def test_training_arguments(tmp_path):
    """The Trainer divides by the labels of the whole batch."""
    change = Change(kind="training-arguments", parameters={"parts": 2})

    assert_same(with_trainer, change, tmp_path=tmp_path)


def test_training_arguments_that_drop_the_last_batch(tmp_path):
    """With smaller batches they would drop fewer samples."""
    with Patches() as patches:
        applied = apply_changes([Change(kind="training-arguments", parameters={"parts": 2})], patches)
        with_trainer([], tmp_path, dataloader_drop_last=True, max_steps=1)

    assert applied.without_effect() == ("training-arguments",)


def test_the_libraries_take_what_edits_write():
    """Each argument that an edit of a script gives is one that the installed library has."""
    import inspect

    import accelerate
    import lightning
    import transformers

    takes = {
        accelerate.Accelerator: {"gradient_accumulation_steps", "gradient_accumulation_plugin", "mixed_precision"},
        lightning.Trainer: {"accumulate_grad_batches", "limit_train_batches", "val_check_interval", "precision"},
        transformers.TrainingArguments: {"per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "optim"},
    }
    for made, arguments in takes.items():
        assert arguments <= inspect.signature(made).parameters.keys()
