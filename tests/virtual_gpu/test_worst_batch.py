"""`--worst-batch`: batches of the longest samples."""

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, Subset

from peaksight.virtual_gpu.training import worst_batch

from .cards import h100

pytestmark = pytest.mark.torch

LENGTHS = [3, 9, 4, 7, 1, 8, 2]


@pytest.fixture
def gpu():
    """A card under the option."""
    with h100(worst_batch=True) as gpu:
        yield gpu


def texts(gpu):
    """What is said under the slug."""
    return [record.what for record in gpu.approximations.records() if record.slug == "worst-batch"]


def samples():
    """Tokens of the lengths above: a list is a dataset too."""
    return [torch.full((length,), length) for length in LENGTHS]


def pad(batch):
    """To the longest."""
    return torch.nn.utils.rnn.pad_sequence(list(batch), batch_first=True)


def shapes(loader):
    """Of its batches."""
    return [tuple(batch.shape) for batch in loader]


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 3},
        {"batch_size": 3, "shuffle": True, "num_workers": 2},
        {"batch_sampler": BatchSampler(range(7), 3, drop_last=False)},
    ],
    ids=["plain", "shuffled", "batch sampler"],
)
def test_every_batch_is_of_the_longest(gpu, options):
    """As many batches as ever, the last as small as ever, each of the longest samples; in every epoch."""
    loader = DataLoader(samples(), collate_fn=pad, **options)

    for _ in range(2):
        assert [(3, 9), (3, 9), (1, 9)] == shapes(loader)
    assert [[9, 8, 7]] * 2 == [batch[:, 0].tolist() for batch in loader][:2]
    assert [] == texts(gpu)


def test_samples_one_by_one(gpu):
    """Without automatic batching, each is the longest."""
    assert [(9,)] * 7 == shapes(DataLoader(samples(), batch_size=None))


def test_only_samples_that_the_sampler_draws(gpu):
    """A sampler of a part of the dataset keeps to its part, as a `Subset` does."""
    part = DataLoader(samples(), batch_size=1, sampler=[0, 2, 4])

    assert [(1, 4)] * 3 == shapes(part)
    assert [(2, 4), (1, 4)] == shapes(DataLoader(Subset(samples(), [0, 2, 4]), batch_size=2, collate_fn=pad))


def test_a_sampler_that_makes_its_batches(gpu):
    """Long samples never meet where batches are made by length: the batch that pads to most is 3 x 4."""
    by_length = [[4, 6], [0, 2, 0], [1], [3]]
    loader = DataLoader(samples(), batch_sampler=by_length, collate_fn=pad)

    assert [(3, 4)] * 4 == shapes(loader)


def test_a_large_dataset_is_read_in_part(gpu, monkeypatch):
    """The report says how many samples were read."""
    monkeypatch.setattr(worst_batch, "MAX_SAMPLES", 4)
    (batch,) = DataLoader(samples(), batch_size=7, collate_fn=pad)

    assert 7 == len(batch)
    assert ["--worst-batch: the longest of 4 samples that were read of 7 in list"] == texts(gpu)


def test_a_slow_dataset_is_read_in_part(gpu, monkeypatch):
    """One sample at the least."""
    monkeypatch.setattr(worst_batch, "MAX_SECONDS", -1.0)
    next(iter(DataLoader(samples(), batch_size=1)))

    assert ["--worst-batch: the longest of 1 samples that were read of 7 in list"] == texts(gpu)


def test_an_iterable_dataset(gpu):
    """Its batches are its own, and that is said."""

    class Stream(IterableDataset):
        def __iter__(self):
            yield from samples()

    assert [(3,), (9,), (4,)] == shapes(DataLoader(Stream(), batch_size=None))[:3]
    assert ["--worst-batch: Stream is iterable, so there are no samples to choose from"] == texts(gpu)


def test_a_script_without_a_loader():
    """That the option had no effect is said at the end."""
    with h100(worst_batch=True) as gpu:
        pass

    assert ["--worst-batch: the script read no DataLoader, so its batches are its own"] == texts(gpu)


def test_empty_datasets(gpu):
    """No batches, as ever."""
    assert [] == list(DataLoader([], batch_size=2)) == list(DataLoader([], batch_sampler=[]))


def test_without_the_option(virtual_gpu):
    """Batches are the loader's own."""
    assert [(7, 9)] == shapes(DataLoader(samples(), batch_size=7, collate_fn=pad, sampler=SequentialSampler(LENGTHS)))
    assert [(1, 3)] == shapes(DataLoader(samples()))[:1]
