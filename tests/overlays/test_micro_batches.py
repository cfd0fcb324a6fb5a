"""Batches in parts: real models trained on the CPU with and without, whose weights end the same up to rounding."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.parts_of_batches import evenly
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)).double()


def make_loader(count=11, **options):
    """The last batch of an epoch has 3 of 4 samples."""
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(count, 6, dtype=torch.float64), torch.randint(0, 3, (count,)))
    return DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(2), **options)


def train(model, loader, *, zero_first=True, scaled=False, epochs=2):
    """As people write it: with clipping, a schedule of each step and each epoch, and an evaluation in between."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    each_step = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=epochs * len(loader))
    scaler = torch.amp.GradScaler("cpu", enabled=scaled, init_scale=8.0)
    sizes = []
    for _ in range(epochs):
        for inputs, targets in loader:
            if zero_first:
                optimizer.zero_grad()
            sizes.append(len(inputs))
            loss = nn.functional.cross_entropy(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
            each_step.step()
            if not zero_first:
                model.zero_grad()
    return sizes, each_step.last_epoch, optimizer.state_dict()["state"][0]["step"]


def under(*changes):
    """The changes, and what of them did nothing."""
    patches = Patches()
    return patches, apply_changes(changes, patches)


def micro_batches(parts, loaders=(0,)):
    return Change(kind="micro-batches", parameters={"parts": parts, "loaders": list(loaders)})


def assert_same(one, other):
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("options", [{}, {"zero_first": False}, {"scaled": True}])
def test_a_plain_loop(parts, options):
    """Every sample counts as before, in the last and smaller batch too; as many steps of everything."""
    model, other = make_model(), make_model()
    sizes, *steps = train(model, make_loader(), **options)

    patches, applied = under(micro_batches(parts))
    with patches:
        small, *small_steps = train(other, make_loader(), **options)

    assert small_steps == steps
    assert sum(small) == sum(sizes) and max(small) == 2
    assert applied.without_effect() == ()
    assert_same(model, other)


def test_workers_that_read_ahead():
    """The parts are counted where the script gets them, not where they are asked for."""
    model, other = make_model(), make_model()
    train(model, make_loader(), epochs=1)

    with under(micro_batches(2))[0]:
        train(other, make_loader(num_workers=1), epochs=1)

    assert_same(model, other)


def test_nothing_is_left_behind():
    """Of the same classes afterwards, and of an optimizer made inside."""
    model, other = make_model(), make_model()
    with under(micro_batches(2))[0]:
        train(make_model(), make_loader())

    sizes, *_ = train(model, make_loader())
    again, *_ = train(other, make_loader())

    assert sizes == again and max(sizes) == 4
    assert_same(model, other)


def test_other_loaders_stay():
    """An evaluation's, read first here, and one of a dataset that only iterates."""

    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(8))

    with under(micro_batches(2, loaders=[1, 2]))[0]:
        assert [len(x) for x, _ in make_loader()] == [4, 4, 3]
        assert [len(x) for x, _ in make_loader()] == [2, 2, 2, 2, 2, 1]
        assert [len(x) for x in DataLoader(Numbers(), batch_size=4)] == [4, 4]


def test_a_loader_that_is_not_there():
    """Says so."""
    patches, applied = under(micro_batches(2, loaders=[3]))
    with patches:
        train(make_model(), make_loader())

    assert applied.without_effect() == ("micro-batches",)


@pytest.mark.parametrize(
    ("count", "parts", "sizes"), [(4, 2, [2, 2]), (5, 2, [3, 2]), (2, 4, [1, 1]), (7, 3, [3, 2, 2])]
)
def test_evenly(count, parts, sizes):
    """No part is empty, none has two more than another."""
    found = evenly(range(count), parts)

    assert [len(each) for each in found] == sizes
    assert [sample for each in found for sample in each] == list(range(count))


def test_gradients_of_a_second_pass_inside_a_backward():
    """A reentrant checkpoint calls backward in the backward pass: the share counts once."""
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.inner = nn.Linear(6, 6).double(), make_model()

        def forward(self, x):
            return checkpoint(self.inner, self.first(x), use_reentrant=True)

    torch.manual_seed(0)
    model = Checkpointed()
    other = copy.deepcopy(model)
    train(model, make_loader())
    with under(micro_batches(2))[0]:
        train(other, make_loader())

    assert_same(model, other)
