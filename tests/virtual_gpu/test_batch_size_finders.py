"""Searches for the batch size that the card holds run unmodified, and end where its memory does.

An example of `Wide` takes 64 MiB, in blocks of one size that no cache can serve in part: how many examples fit is a
division, wherever the search comes from.
"""

import gc
import importlib

import pytest
import torch
from torch import nn

from peaksight.errors import StopSimulation
from peaksight.units import GIB, MIB

from .cards import card_with

pytestmark = [pytest.mark.torch, pytest.mark.models]

WIDTH = 8 * MIB
EXAMPLE_BYTES = 2 * WIDTH * 4
LARGEST = 14
USABLE_BYTES = GIB


@pytest.fixture(autouse=True)
def frozen():
    """Searches collect garbage before each trial: not that of everything that the tests have imported."""
    gc.freeze()
    yield
    gc.unfreeze()


class Wide(nn.Module):
    """A single parameter that scales a number for each example, `WIDTH` times."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, numbers):
        return (numbers.view(-1, 1).expand(-1, WIDTH) * self.weight).tanh().sum()


class Ended:
    """How a run on the small card ended: `found` is what the search said."""

    def __init__(self, gpu, reason, found=None):
        self.reason, self.found = reason, found
        self.steps = gpu.ledger.steps
        self.tried = [failure.step for failure in gpu.failures.records]
        self.peak_bytes = gpu.ledger.peaks.allocated_bytes


def run(script, *arguments):
    """Run `script(*arguments, found)` on a card of a GiB; it adds the size that it goes on with to `found`."""
    found = []
    with card_with(USABLE_BYTES, max_steps=None) as gpu:
        try:
            script(*arguments, found)
            reason = "script"
        except StopSimulation as stop:
            reason = stop.reason
        except torch.OutOfMemoryError:
            reason = "out of memory"
    return Ended(gpu, reason, *found)


def fits(script, size):
    """Whether `script(size, found)` trains to the steady state."""
    return run(script, size).reason == "steady"


def step(model, optimizer, size):
    """One step with `size` examples."""
    model(torch.ones(size, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()


def train(size, steps=1000):
    """A model of its own, and as many steps."""
    model = Wide().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        step(model, optimizer, size)


def plainly(size, found):
    """Train with `size`."""
    train(size)


def test_the_largest_size_is_a_division():
    """What the other tests rely on."""
    assert fits(plainly, LARGEST)
    assert not fits(plainly, LARGEST + 1)


# Written by hand.


def halving(found):
    size = 64
    while True:
        try:
            found[:] = [size]
            train(size)
            break
        except torch.OutOfMemoryError:
            size //= 2
            torch.cuda.empty_cache()


def doubling(found):
    size = 1
    while True:
        try:
            train(size, steps=3)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            torch.cuda.empty_cache()
            break
        size *= 2
    found.append(size // 2)
    train(size // 2)


def bisection(found):
    def is_too_large(size):
        try:
            train(size, steps=2)
            return False
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return True

    low, high = 1, 64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_too_large(middle) else (middle, high)
    found.append(low)
    train(low)


def in_steps_of_two(found):
    kept = []  # a search that keeps its models
    model = Wide().cuda()
    for size in range(2, 100, 2):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        kept.append(optimizer)
        try:
            for _ in range(2):
                step(model, optimizer, size)
        except Exception:
            torch.cuda.empty_cache()
            break
        found[:] = [size]
    train(found[0])


@pytest.mark.parametrize(
    ("search", "size", "num_failures"),
    [(halving, 8, 3), (doubling, 8, 1), (bisection, 14, 3), (in_steps_of_two, 14, 1)],
)
def test_written_by_hand(search, size, num_failures):
    """What it tries does not end the run, and the training after it does."""
    ended = run(search)

    assert (ended.reason, ended.found) == ("steady", size)
    assert len(ended.tried) == num_failures
    assert ended.steps[-1].peak_allocated_bytes >= size * EXAMPLE_BYTES
    assert not ended.steps[-1].may_be_trial
    assert ended.steps[0].may_be_trial is (search is not halving)  # which has no trial that succeeds


# Of libraries.


def with_accelerate(found):
    find_executable_batch_size = pytest.importorskip("accelerate").utils.find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=64)
    def inner_training_loop(batch_size):
        found[:] = [batch_size]
        train(batch_size)

    inner_training_loop()


def test_accelerate():
    """It tries nine tenths of the size until it trains: 64, 57, 51, ... 15, 13."""
    ended = run(with_accelerate)

    assert (ended.reason, ended.found) == ("steady", 13)
    assert len(ended.tried) == 13
    assert [step.step for step in ended.steps] == [1, 2, 3]


def test_transformers(tmp_path):
    """`auto_find_batch_size` is accelerate's search around the training: 32, 28, 25, ... 15, 13."""
    transformers = pytest.importorskip("transformers")

    class Model(Wide):
        def forward(self, numbers):
            return {"loss": super().forward(numbers)}

    def script(found):
        class Says(transformers.TrainerCallback):
            def on_train_begin(self, arguments, state, control, **kwargs):
                found[:] = [state.train_batch_size]

        arguments = transformers.TrainingArguments(
            str(tmp_path), auto_find_batch_size=True, per_device_train_batch_size=32, report_to=[], max_steps=1000,
            save_strategy="no", dataloader_pin_memory=False, disable_tqdm=True, max_grad_norm=0,
        )  # fmt: skip
        data = [{"numbers": torch.ones(())}] * 1000
        transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=[Says()]).train()

    ended = run(script)

    assert (ended.reason, ended.found) == ("steady", 13)
    assert len(ended.tried) == 7


def nothing(trainer, module):
    """No search."""


def lightning_script(package, tmp_path, *, search=nothing, callbacks=(), size=1):
    """A script whose module has `size` as its batch size, that `search(trainer, module)` or `callbacks` may change."""
    lightning = pytest.importorskip(package)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.batch_size, self.lr = size, 0.1
            self.wide = Wide()

        def training_step(self, batch, index):
            return self.wide(batch)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=self.lr)

        def train_dataloader(self):
            return torch.utils.data.DataLoader(torch.ones(1000), batch_size=self.batch_size)

    def script(found):
        trainer = lightning.Trainer(
            accelerator="gpu", devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
            callbacks=list(callbacks),
        )  # fmt: skip
        module = Module()
        search(trainer, module)
        try:
            trainer.fit(module)
        finally:
            found[:] = [module.batch_size]

    return script


PACKAGES = pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
MODES = pytest.mark.parametrize(
    ("mode", "options", "size", "num_failures"), [("power", {}, 8, 1), ("binsearch", {"margin": 0.0}, 14, 2)]
)


def check_search(ended, size, num_failures):
    """It found `size` before step 1, and its trials are no steps of the training."""
    assert (ended.reason, ended.found) == ("steady", size)
    assert ended.tried == [1] * num_failures
    assert [step.step for step in ended.steps] == [1, 2, 3]
    assert all(0 <= step.peak_allocated_bytes - size * EXAMPLE_BYTES < MIB for step in ended.steps)


@PACKAGES
@MODES
def test_lightnings_tuner(package, mode, options, size, num_failures, tmp_path):
    """Three steps for each size."""

    def search(trainer, module):
        tuner = importlib.import_module(f"{package}.tuner").Tuner(trainer)
        tuner.scale_batch_size(module, mode=mode, init_val=1, **options)

    check_search(run(lightning_script(package, tmp_path, search=search)), size, num_failures)


@MODES
def test_lightnings_callback(mode, options, size, num_failures, tmp_path):
    """The same search inside of `fit`."""
    callbacks = pytest.importorskip("lightning.pytorch.callbacks")
    finder = callbacks.BatchSizeFinder(mode=mode, init_val=1, **options)

    check_search(run(lightning_script("lightning.pytorch", tmp_path, callbacks=[finder])), size, num_failures)


def test_lightning_alone(tmp_path):
    """The size that was found trains, and the next one that was tried does not."""
    for size, reason in ((LARGEST, "steady"), (LARGEST + 1, "out of memory")):
        assert run(lightning_script("lightning.pytorch", tmp_path, size=size)).reason == reason


@PACKAGES
def test_lightnings_search_for_a_learning_rate(package, tmp_path):
    """Twenty steps in which the learning rate grows are no steps of the training."""

    def search(trainer, module):
        importlib.import_module(f"{package}.tuner").Tuner(trainer).lr_find(module, num_training=20)

    check_search(run(lightning_script(package, tmp_path, search=search)), 1, 0)
