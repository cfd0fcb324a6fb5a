"""A larger batch that is still to come is run, though the steps before it show nothing new."""

from contextlib import suppress

import pytest
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from peaksight.errors import StopSimulation
from peaksight.virtual_gpu.training import stopping

from .cards import h100

pytestmark = pytest.mark.torch

LARGEST = 50_000
ROWS = [2, 3, 2, 2, 2, 3, 2, 2, 2, 2, 2, LARGEST, 2, 2]


def run(train):
    """The rows of the steps that `train` came to before the card stopped it, and what is said of the others."""
    seen = []
    with h100(max_steps=None) as gpu:
        model = nn.Linear(64, 64).cuda()
        optimizer = torch.optim.AdamW(model.parameters())

        def step(data):
            seen.append(len(data))
            model(data.cuda()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

        with suppress(StopSimulation):
            train(step)
    return seen, {record.slug: record.what for record in gpu.approximations.records()}


def batches():
    return [torch.randn(rows, 64) for rows in ROWS]


def lengths(step):
    for rows in ROWS:
        step(torch.randn(rows, 64, device="cuda"))


def a_list(step):
    data = batches()
    for batch in data:
        batch = batch + 1
        step(batch)


def counted(step):
    data = batches()
    for index, batch in enumerate(data, 1):
        assert batch is data[index - 1]
        step(batch)


def zipped(step):
    data, names = batches(), [str(rows) for rows in ROWS]
    for index, (batch, name) in enumerate(zip(data, names, strict=True)):
        assert ROWS[index] == len(batch) == int(name)
        step(batch)


def nameless(step):
    for batch in sorted(batches(), key=lambda batch: len(batch) > 2):
        step(batch)


def dictionary(step):
    data = dict(enumerate(batches()))
    for _key, batch in data.items():
        step(batch)


def a_loader(step):
    for batch in DataLoader(batches(), batch_size=None):
        step(batch)


def workers(step):
    loader = DataLoader(batches(), batch_size=1, num_workers=2, pin_memory=True)
    for _index, batch in enumerate(loader):
        step(batch[0])


class Lengthless(BatchSampler):
    """As PyTorch Geometric's, which bounds the nodes of a batch."""

    def __len__(self):
        raise ValueError("undefined")


def lengthless_loader(step):
    for batch in DataLoader(batches(), batch_sampler=Lengthless(SequentialSampler(ROWS), 1, drop_last=False)):
        step(batch[0])


LOOPS = [lengths, a_list, counted, zipped, nameless, dictionary, a_loader, workers, lengthless_loader]


@pytest.mark.parametrize(
    "loop", [loop for loop in LOOPS if loop is not lengthless_loader], ids=lambda loop: loop.__name__
)
def test_a_loop_is_followed_to_its_largest_batch(loop):
    """GIVEN few steps, THEN all of them are run up to it, and nothing is left out."""
    seen, told = run(loop)

    assert LARGEST in seen
    assert len(seen) > 7
    assert not told.keys() & {"skipped-batches", "later-batches"}


@pytest.fixture
def nothing_covered(monkeypatch):
    """Steps that take as many blocks as those of a large model, in a loop that has many left."""
    monkeypatch.setattr(stopping, "MAX_BLOCKS_LEFT", -1)
    monkeypatch.setattr(stopping, "MAX_ROUNDS_LEFT", -1)


@pytest.mark.usefixtures("nothing_covered")
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_batches_before_the_largest_are_left_out(loop):
    """The largest is the last step that is run, and what is left out is said."""
    seen, told = run(loop)

    assert seen[-1] == LARGEST
    assert len(seen) < 8
    assert "test_larger_batches.py" in told["skipped-batches"]


def by_number(step):
    data = batches()
    for index in range(len(data)):
        step(data[index])


def left_before(step):
    for index, batch in enumerate(DataLoader(batches(), batch_size=None)):
        step(batch)
        if index == 8:
            break


@pytest.mark.usefixtures("nothing_covered")
@pytest.mark.parametrize("loop", [by_number, left_before], ids=lambda loop: loop.__name__)
def test_a_loop_that_may_end_before_or_cannot_be_moved_on(loop):
    """Its largest batch is not run, which is said."""
    seen, told = run(loop)

    assert LARGEST not in seen
    assert "test_larger_batches.py" in told["later-batches"]


def test_elements_by_number_are_followed():
    """They need no moving on."""
    seen, told = run(by_number)

    assert LARGEST in seen
    assert "later-batches" not in told


class Stream(IterableDataset):
    """Without an end."""

    def __iter__(self):
        yield from (torch.randn(rows, 64) for rows in ROWS)


def a_stream(step):
    for batch in DataLoader(Stream(), batch_size=None):
        step(batch)


def alike(step):
    for batch in DataLoader([torch.randn(2, 64)] * 30, batch_size=None):
        step(batch)


def smaller(step):
    data = batches()[::-1]
    for batch in data[2:]:
        step(batch)


@pytest.mark.usefixtures("nothing_covered")
@pytest.mark.parametrize("loop", [a_stream, alike, smaller], ids=lambda loop: loop.__name__)
def test_nothing_larger_to_come(loop):
    """Near misses: the run ends at its steady state."""
    seen, told = run(loop)

    assert len(seen) < 8
    assert "skipped-batches" not in told


@pytest.mark.models
@pytest.mark.usefixtures("nothing_covered")
def test_a_loader_of_accelerate_is_one_batch_ahead():
    """The largest is run, not only read."""
    accelerate = pytest.importorskip("accelerate")

    def train(step):
        loader = accelerate.Accelerator(cpu=True).prepare(DataLoader(batches(), batch_size=None))
        for batch in loader:
            step(batch)

    seen, told = run(train)

    assert LARGEST in seen
    assert "skipped-batches" in told
