"""What follows a training that is over at its steady state is run, too."""

from itertools import count

import pytest
import torch
from torch import nn

from peaksight.errors import StopSimulation
from peaksight.virtual_gpu.training import stopping
from peaksight.virtual_gpu.training.stopping import MAX_CALLS_AFTER
from peaksight.virtual_gpu.unreached import Lookout, is_last_round, rounds_left

from .cards import h100

pytestmark = pytest.mark.torch


class Settings:
    """As a parser gives them."""

    epochs = 2
    accumulate = 3
    names = ("a", "b", "c")


def in_every_round(loop):
    """What `is_last_round` answers in each round of `loop`, which calls what it is given."""
    answers = []
    loop(lambda: answers.append(is_last_round()))
    return answers


def numbers(step):
    for _step in range(1, 4):
        step()


def nested(step):
    settings, batches = Settings(), [1, 2]
    for _epoch in range(settings.epochs):
        for _index, _batch in enumerate(batches):
            step()


def computed(step):
    settings = Settings()
    for _number in range(settings.accumulate * 2 - len(settings.names)):
        step()


def unknown(step):
    for _number in range(int("2")):
        step()


def bars(step):
    tqdm = iter  # what a bar does beside showing itself
    for _number in tqdm(range(2)):
        step()


def batches_of_a_loader(step):
    loader = torch.utils.data.DataLoader([1, 2, 3, 4], batch_size=2)
    for _index, _batch in enumerate(loader, 5):
        step()


def until_it_is_enough(step):
    done = 0
    while done < 2:
        done += 1
        step()


def an_iterator(step):
    for _batch in iter([1, 2]):
        step()


def a_comprehension(step):
    [step() for _ in range(2)]


def nothing_around(step):
    step()


@pytest.mark.parametrize(
    ("loop", "answers"),
    [
        (numbers, [False, False, True]),
        (nested, [False, False, False, True]),
        (bars, [False, True]),
        (batches_of_a_loader, [False, True]),
        (until_it_is_enough, [False, False]),
        (an_iterator, [False, False]),
        (a_comprehension, [False, False]),
        (nothing_around, [True]),
        (computed, [False, False, True]),
        (unknown, [False, False]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_last_round(loop, answers):
    """Only where variables and lengths tell: none of these calls is made to find out."""
    assert in_every_round(loop) == answers


def loaders(step):
    """Two epochs of a loader of three batches, without a variable that counts."""
    loader = torch.utils.data.DataLoader([1, 2, 3, 4, 5], batch_size=2)
    for _epoch in range(2):
        for _batch in loader:
            step()


class OwnLoader:
    """Slices of a tensor, as people write it."""

    def __init__(self, data, size):
        self.data, self.size = data, size

    def __len__(self):
        return -(-len(self.data) // self.size)

    def __iter__(self):
        for start in range(0, self.data.size(0), self.size):
            yield self.data[start : start + self.size]


class Around:
    """A loader with something done to each of its batches."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for batch in self.loader:
            yield batch + 1


def every(loader, _interval):
    """Its batches, as the reference scripts of torchvision log them."""
    yield from loader


def own_loader(step):
    loader = OwnLoader(torch.arange(5), 2)
    for _epoch in range(2):
        for _batch in loader:
            step()


def own_loader_at_once(step):
    for _index, _batch in enumerate(OwnLoader(torch.arange(5), 2)):
        step()


def own_loader_counted(step):
    loader = OwnLoader(torch.arange(5), 2)
    for _index, _batch in enumerate(loader):
        step()


def held_loader(step):
    loader = Around(torch.utils.data.DataLoader([1, 2, 3, 4, 5], batch_size=2))
    for _batch in loader:
        step()


def logged_loader(step):
    loader = torch.utils.data.DataLoader([1, 2, 3, 4, 5], batch_size=2)
    for _index, _batch in enumerate(every(loader, 10)):
        step()


def two_loaders(step):
    short, long = (torch.utils.data.DataLoader(range(number)) for number in (2, 4))
    for _first, _second in zip(long, short, strict=False):
        step()


def nameless_loader(step):
    for _index, _batch in enumerate(torch.utils.data.DataLoader([1, 2, 3, 4, 5], batch_size=2)):
        assert next(iter(torch.utils.data.DataLoader(range(9)))) == 0
        step()


def slices(step):
    data = torch.arange(5)
    for _start in range(0, data.shape[0] - 1, 2):
        step()


def own_generator(step):
    def batches(number):
        for index in range(number):
            yield index * 2

    for _batch in batches(3):
        step()


def endless_generator(step):
    def batches():
        number = 0
        while number < 2:
            number += 1
            yield number

    for _batch in batches():
        step()


@pytest.mark.parametrize(
    ("loop", "answers"),
    [
        (own_loader, [2, 1, 0, 2, 1, 0]),
        (own_loader_at_once, [2, 1, 0]),
        (own_loader_counted, [2, 1, 0]),
        (held_loader, [2, 1, 0]),
        (logged_loader, [2, 1, 0]),
        (two_loaders, [1, 0]),
        (nameless_loader, [2, 1, 0]),
        (slices, [1, 0]),
        (own_generator, [2, 1, 0]),
        (endless_generator, [None, None]),
        (numbers, [2, 1, 0]),
        (nested, [1, 0, 1, 0]),
        (loaders, [2, 1, 0, 2, 1, 0]),
        (batches_of_a_loader, [1, 0]),
        (until_it_is_enough, [None, None]),
        (an_iterator, [None, None]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_rounds_that_the_innermost_loop_has_left(loop, answers):
    """Of the nearest one only; that of the caller, which has one round, is further away."""
    found = []
    for _once in range(1):
        with h100():
            loop(lambda: found.append(rounds_left()))

    assert found == answers


def train(after, steps=3):
    """Three steps, and `after`, on a card that stops at the steady state."""
    with h100(max_steps=None) as gpu:
        model = nn.Linear(64, 64).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _step in range(steps):
            model(torch.randn(2, 64, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        after(model)
    return gpu


def test_what_follows_the_last_step_is_in_the_peak():
    """The evaluation takes more than the training."""
    gpu = train(lambda model: model(torch.randn(100_000, 64, device="cuda")))

    assert gpu.ledger.peaks.allocated_bytes > 100_000 * 64 * 4
    assert [step.complete for step in gpu.ledger.steps] == [True, True, True, False]


def test_a_training_that_goes_on_is_stopped():
    """There is no end in sight."""
    with pytest.raises(StopSimulation, match="steady"):
        train(lambda model: None, steps=50)


def test_what_follows_is_stopped_at_last():
    """An evaluation that waits for a value which never comes."""

    def wait(model):
        while True:
            model(torch.randn(2, 64, device="cuda"))
            calls.append(1)

    calls = []
    with pytest.raises(StopSimulation, match="steady"):
        train(wait)
    assert len(calls) == MAX_CALLS_AFTER


def train_epochs(steps, evaluate, count=lambda blocks: None):
    """Epochs of `steps` with `evaluate` behind each, of which a lookout always says that it was not reached."""
    with h100(max_steps=None, lookout=_NeverDone(".")) as gpu:
        model = nn.Linear(64, 64).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _epoch in range(50):
            for _step in range(steps):
                model(torch.randn(2, 64, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                count(gpu.devices.num_births)
            evaluate(model, gpu.loop.step)


class _NeverDone(Lookout):
    def not_reached(self):
        return ("train.py:9",)


@pytest.fixture
def no_blocks_left(monkeypatch):
    """Steps that take as many blocks as those of a large model."""
    monkeypatch.setattr(stopping, "MAX_BLOCKS_LEFT", 0)


@pytest.mark.usefixtures("no_blocks_left")
def test_the_evaluation_behind_a_short_epoch_is_reached():
    """GIVEN five steps, THEN those after the steady state run too, and what follows them once."""
    reached = []
    with pytest.raises(StopSimulation, match="steady"):
        train_epochs(5, lambda model, step: reached.append(step))

    assert reached == [6]


@pytest.mark.usefixtures("no_blocks_left")
def test_a_long_epoch_is_not_gone_through():
    """Near miss: thirty steps are left."""
    reached = []
    with pytest.raises(StopSimulation, match="steady"):
        train_epochs(33, lambda model, step: reached.append(step))

    assert not reached


@pytest.mark.usefixtures("no_blocks_left")
def test_epochs_that_each_begin_higher_are_followed_once():
    """What an evaluation leaves makes the next step differ, and the ones after it are alike again."""
    kept = []
    with pytest.raises(StopSimulation, match="steady"):
        train_epochs(4, lambda model, step: kept.append(torch.empty(step * 10**6, device="cuda")))

    assert len(kept) == 1


def test_steps_of_few_blocks_are_gone_through_as_long_as_all_take_few(monkeypatch):
    """Of epochs of thirty, those that together take 2000 blocks; then the next one is left as it begins."""
    monkeypatch.setattr(stopping, "MAX_BLOCKS_LEFT", 2000)
    counts, reached = [0], []
    with pytest.raises(StopSimulation, match="steady"):
        train_epochs(30, lambda model, step: reached.append(step), count=counts.append)

    a_step = counts[-1] - counts[-2]
    assert reached == [31 + 30 * epoch for epoch in range((2000 + 3 * a_step) // (30 * a_step))]


def test_a_second_training_is_followed_to_its_own_steady_state():
    """GIVEN more steps than a run has that does not agree, THEN the next training has as many."""
    with h100(max_steps=None, lookout=_NeverDone(".")) as gpu:
        for size, times in ((64, 30), (128, 2)):
            model = nn.Linear(size, 512).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            for _step in range(times):
                model(torch.randn(size * size, size, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

    assert len(gpu.ledger.steps) >= 32


def test_each_training_is_followed_as_far(monkeypatch):
    """GIVEN trainings that together take more blocks than one may, THEN what follows the last is reached."""
    with h100(max_steps=None, lookout=_NeverDone(".")) as gpu:
        for size in (64, 128):
            model = nn.Linear(size, 512).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            for _step in range(30):
                before = gpu.devices.num_births
                model(torch.randn(size * size, size, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                monkeypatch.setattr(stopping, "MAX_BLOCKS_LEFT", 40 * (gpu.devices.num_births - before))

    assert len([step for step in gpu.ledger.steps if step.complete]) == 60


class _Optimizer:
    """Gone as soon as nobody holds it."""


def test_a_training_is_another_wherever_its_optimizer_lies(monkeypatch):
    """GIVEN an optimizer in the memory of one that is gone, THEN it has as much room as that one had."""
    monkeypatch.setattr(stopping, "MAX_BLOCKS_LEFT", 11)
    blocks = count()
    allowance = stopping.Allowance(lambda: next(blocks))
    covered = []
    for _training in range(3):
        optimizer = _Optimizer()
        allowance.stepped(optimizer)
        allowance.step_ended()
        covered.append(allowance.covers(11))
        del optimizer

    assert [True] * 3 == covered
