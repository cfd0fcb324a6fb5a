"""The data pipeline runs for real, in this process."""

from collections import UserDict

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)

from peaksight.records import Role

from .cards import births_on, h100, requested

pytestmark = pytest.mark.torch


class Ragged(Dataset):
    """Samples of random lengths, with random labels."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.randint(0, 100, (index + 1,)), torch.randint(0, 10, ()).item()


def pad(samples):
    """Pad tokens to the longest of the batch."""
    tokens, labels = zip(*samples, strict=True)
    return torch.nn.utils.rnn.pad_sequence(list(tokens), batch_first=True), torch.tensor(labels)


LOADERS = {
    "plain": {},
    "shuffled": {"shuffle": True},
    "workers": {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
    "pinned": {"pin_memory": True, "num_workers": 1},
    "seeded": {"shuffle": True, "generator": torch.Generator().manual_seed(0)},
    "started": {"num_workers": 2, "worker_init_fn": lambda worker: torch.manual_seed(worker)},
    "forked": {"num_workers": 2, "multiprocessing_context": "fork", "pin_memory": True},
    "spawned": {"num_workers": 2, "multiprocessing_context": "spawn"},
    "from a server": {"num_workers": 2, "multiprocessing_context": "forkserver", "persistent_workers": True},
    "timed": {"num_workers": 2, "timeout": 60, "drop_last": True},
}


@pytest.mark.parametrize("options", LOADERS.values(), ids=LOADERS)
def test_batches_are_real(virtual_gpu, options):
    """Batches have their real sizes and values, whatever the loader's options."""
    batches = list(DataLoader(Ragged(), batch_size=4, collate_fn=pad, **options))

    assert [(4, 8)] == sorted({tuple(tokens.shape) for tokens, _ in batches if tokens.shape[1] == 8})
    assert all(type(tokens) is torch.Tensor and 0 <= tokens.min().item() < 100 for tokens, _ in batches)
    assert 2 == len(batches)
    assert [] == virtual_gpu.ledger.births


def test_batches_move_to_the_card(virtual_gpu):
    """A batch of 4 x 3 floats and 4 int64 labels is an input of 48 and 32 bytes."""
    data = TensorDataset(torch.randn(4, 3), torch.randint(0, 10, (4,)))
    with births_on(virtual_gpu) as births:
        batch = [tensor.to("cuda", non_blocking=True) for tensor in next(iter(DataLoader(data, batch_size=4)))]

    assert [48, 32] == requested(births)
    assert {Role.INPUT} == {birth.role for birth in births}
    assert all(tensor.is_cuda for tensor in batch)


class Stream(IterableDataset):
    """Splits a range over its workers, in a generator."""

    def __iter__(self):
        worker = get_worker_info()
        start, step = (worker.id, worker.num_workers) if worker else (0, 1)
        yield from range(start, 8, step)


class Share(IterableDataset):
    """Splits a range over its workers before the first sample is asked for."""

    def __iter__(self):
        worker = get_worker_info()
        return iter(range(worker.id, 8, worker.num_workers) if worker else range(8))


class Range(IterableDataset):
    """A range that a function splits, as torch's documentation does."""

    def __init__(self):
        self.start, self.step = 0, 1

    def __iter__(self):
        return iter(range(self.start, 8, self.step))


def split_range(worker):
    """For `Range`: each worker has a dataset of its own."""
    info = get_worker_info()
    assert worker == info.id
    info.dataset.start, info.dataset.step = worker, info.num_workers


STREAMS = {"generator": Stream(), "iterator": Share(), "function": Range()}


@pytest.mark.parametrize("num_workers", [0, 1, 2])
@pytest.mark.parametrize("dataset", STREAMS.values(), ids=STREAMS)
def test_workers_of_a_stream(dataset, num_workers):
    """Every worker reads its share, in every epoch: the batches are those of real workers, in their order."""
    init = split_range if isinstance(dataset, Range) and num_workers else None
    loader = DataLoader(dataset, batch_size=2, num_workers=num_workers, worker_init_fn=init)
    real = [batch.tolist() for batch in loader]
    with h100():
        for _ in range(2):
            assert real == [batch.tolist() for batch in loader]
        assert get_worker_info() is None


class Counted(Dataset):
    """Refuses to be copied, and counts what it gave."""

    def __init__(self):
        self.count = 0

    def __len__(self):
        return 4

    def __getitem__(self, index):
        self.count += 1
        return torch.ones(index + 1)

    def __reduce_ex__(self, protocol):
        raise TypeError("there is one of me")


def test_a_dataset_that_cannot_be_copied(virtual_gpu):
    """It is read itself."""
    dataset = Counted()
    shapes = [tuple(batch.shape) for batch in DataLoader(dataset, num_workers=2)]

    assert [(1, 1), (1, 2), (1, 3), (1, 4)] == shapes
    assert 4 == dataset.count


@pytest.mark.parametrize(
    "sampler",
    [
        lambda data: RandomSampler(data),
        lambda data: RandomSampler(data, replacement=True, num_samples=8),
        lambda data: WeightedRandomSampler([1.0] * 8, 8),
        lambda data: DistributedSampler(data, num_replicas=1, rank=0),
    ],
)
def test_samplers(virtual_gpu, sampler):
    """Samplers draw real indices."""
    data = Ragged()
    batches = list(DataLoader(data, batch_size=4, sampler=sampler(data), collate_fn=pad))

    assert [4, 4] == [len(labels) for _, labels in batches]


def test_batch_sampler(virtual_gpu):
    """A batch sampler decides the batches."""
    data = Ragged()
    sampler = BatchSampler(range(8), batch_size=3, drop_last=False)

    assert [3, 3, 2] == [len(labels) for _, labels in DataLoader(data, batch_sampler=sampler, collate_fn=pad)]


def test_random_split(virtual_gpu):
    """`random_split` permutes real indices."""
    parts = random_split(Ragged(), [6, 2], generator=torch.Generator().manual_seed(0))

    assert list(range(8)) == sorted(index for part in parts for index in part.indices)


def test_collate_of_nested_samples(virtual_gpu):
    """Dictionaries and tuples are collated as ever."""
    collated = default_collate([{"x": torch.ones(2), "y": (1, 2.0)}] * 3)

    assert (3, 2) == tuple(collated["x"].shape)
    assert [1, 1, 1] == collated["y"][0].tolist()


def test_collate_of_nested_samples_on_the_card(virtual_gpu):
    """Tensors of the card are stacked there: 3 x 2 floats, and the numbers beside them on the host."""
    samples = [{"image": {"pixels": torch.ones(2, device="cuda")}, "size": [1, 2]}] * 3
    with births_on(virtual_gpu) as births:
        (batch,) = DataLoader(samples, batch_size=3)

    assert batch["image"]["pixels"].is_cuda
    assert (3, 2) == tuple(batch["image"]["pixels"].shape)
    assert [[1, 1, 1], [2, 2, 2]] == [size.tolist() for size in batch["size"]]
    assert [24] == requested(births)


class Padded:
    """A collate function with a state, which gives an object of its own."""

    def __init__(self, value):
        self.value = value

    def __call__(self, samples):
        tokens = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True, padding_value=self.value)
        return UserDict(tokens=tokens, mask=tokens != self.value)


def test_custom_collate(virtual_gpu):
    """Its object arrives as it is."""
    samples = [torch.ones(length, dtype=torch.long) for length in (1, 3)]
    (batch,) = DataLoader(samples, batch_size=2, num_workers=1, collate_fn=Padded(7))

    assert [[1, 7, 7], [1, 1, 1]] == batch["tokens"].tolist()
    assert 4 == batch["mask"].sum()


def test_dataset_that_uses_the_card(virtual_gpu):
    """A dataset may keep its data on the card: a batch is made there."""
    data = TensorDataset(torch.randn(8, 4, device="cuda"))
    (batch,) = next(iter(DataLoader(data, batch_size=4)))

    assert batch.is_cuda
    assert (4, 4) == tuple(batch.shape)


@pytest.mark.parametrize("move", [lambda t: t.cuda(), lambda t: t.to("cuda"), lambda t: torch.tensor(1, device="cuda")])
def test_collate_on_the_card(virtual_gpu, move):
    """Without workers it is the script that collates: what it makes on the card is counted."""
    data = TensorDataset(torch.randn(8, 4))
    with births_on(virtual_gpu) as births:
        batches = list(DataLoader(data, batch_size=4, collate_fn=lambda rows: move(torch.stack([x for (x,) in rows]))))

    assert [batch.nbytes for batch in batches] == requested(births)
    assert {Role.INPUT} == {birth.role for birth in births}


def test_dataset_with_a_module(virtual_gpu):
    """Transforms that are modules run on real data."""

    class Normalize(torch.nn.Module):
        def forward(self, value):
            return value / 2

    class Images(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return Normalize()(torch.full((2,), float(index)))

    assert [[0.0, 0.0], [0.5, 0.5]] == next(iter(DataLoader(Images(), batch_size=2))).tolist()


def test_exception_of_a_dataset(virtual_gpu):
    """The script's own exception comes through, and the virtual GPU goes on."""

    class Broken(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            raise KeyError(index)

    with pytest.raises(KeyError):
        next(iter(DataLoader(Broken())))

    assert torch.ones(1, device="cuda").is_cuda


def test_loader_is_as_before(virtual_gpu):
    """The script's loader keeps its own settings and its length."""
    loader = DataLoader(Ragged(), batch_size=2, num_workers=2, collate_fn=pad)
    list(loader)
    list(loader)

    assert (2, 4) == (loader.num_workers, len(loader))
