"""GIVEN DataLoaders, THEN each batch is known with what was asked for and what came."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from .cards import h100

pytestmark = pytest.mark.torch


def seen(*loaders):
    """The facts of all batches of `loaders`, one after the other."""
    with h100() as gpu:
        for loader in loaders:
            for _ in loader:
                pass
    return gpu.witness.batches.facts[0]


def samples(num_samples):
    return TensorDataset(torch.zeros(num_samples, 3), torch.zeros(num_samples, dtype=torch.long))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_batch_has_what_came(num_workers):
    first, last = seen(DataLoader(samples(6), batch_size=4, num_workers=num_workers))

    assert (first.step, first.loader, first.batch_size, first.bytes) == (1, 0, 4, 4 * (3 * 4 + 8))
    assert (first.shapes, last.shapes) == ("float32[4, 3]; int64[4]", "float32[2, 3]; int64[2]")
    assert "test_batches_seen.py:" in first.at


def test_what_a_collate_function_multiplies_shows():
    def collate(samples):
        return {"views": [torch.zeros(2 * len(samples), 3)], "of": SimpleNamespace(ids=torch.zeros(len(samples)))}

    (fact,) = seen(DataLoader(samples(4), batch_size=4, collate_fn=collate))
    assert (fact.batch_size, fact.shapes) == (4, "float32[8, 3]; float32[4]")


def test_loaders_have_numbers_and_a_sampler_may_say_the_size():
    loader = DataLoader(samples(4), batch_sampler=[[0, 1], [2, 3]])
    facts = seen(loader, DataLoader(samples(4), batch_size=2), loader)

    assert [fact.loader for fact in facts] == [0, 0, 1, 1, 0, 0]
    assert [fact.batch_size for fact in facts] == [0, 0, 2, 2, 0, 0]


def test_workers_of_an_iterable_dataset_are_one_loader():
    class Endless(IterableDataset):
        def __iter__(self):
            return iter(torch.zeros(4, 3))

    facts = seen(DataLoader(Endless(), batch_size=2, num_workers=2))
    assert [(fact.loader, fact.shapes) for fact in facts] == [(0, "float32[2, 3]")] * 4


def test_a_pass_over_much_data_leaves_few_facts():
    assert len(seen(DataLoader(samples(100), batch_size=1))) == 32


def test_a_batch_without_tensors_has_no_shapes():
    (fact,) = seen(DataLoader(["a", "b"], batch_size=2))
    assert (fact.bytes, fact.shapes) == (0, "")
