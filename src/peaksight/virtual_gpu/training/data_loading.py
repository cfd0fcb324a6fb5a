"""The data pipeline runs for real, in this process.

Worker processes change no shape: a loader with workers is read as they would read it (`get_worker_info()` answers, no
mode is on), one batch at a time, so that nothing is forked, pinned or prefetched.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

from peaksight.overlays.parts_of_batches import parts_per_batch
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.torch_private import function_modes_off, modes_off
from peaksight.virtual_gpu.training.readings import Reading
from peaksight.virtual_gpu.training.worst_batch import WorstBatches

Follow = Callable[[DataLoader[Any]], Callable[[Any], None]]


# How each loader is read, by whoever has begun last.
_last_reading: WeakKeyDictionary[DataLoader[Any], ref[Any]] = WeakKeyDictionary()
# Whoever reads a loader, in the order in which they began.
_readings: list[ref[Any]] = []


def batches_left(loader: DataLoader[Any]) -> int | None:
    """How many batches the last one to read `loader` has still to come; None where nobody does, or it has no length."""
    if (is_last := getattr(loader, "end_of_dataloader", None)) is not None:
        return _ahead_by_one(loader, is_last)
    reading = _last_reading.get(loader)
    iterator = reading() if reading is not None else None
    return _left(loader, iterator, parts_per_batch(loader)) if iterator is not None else None


def batches_left_of_last() -> int | None:
    """How many batches are to come of the loader that was begun last and is read yet; it may have no name."""
    _readings[:] = [reading for reading in _readings if reading() is not None]
    iterator = _readings[-1]() if _readings else None
    return _left(iterator, iterator, 1) if iterator is not None else None


def _left(batches: Any, iterator: Any, num_parts: int) -> int | None:
    """How many of the `batches`, each in `num_parts`, the script has not got yet, though they may have been read."""
    if isinstance(iterator._dataset, IterableDataset):
        return None
    try:
        length = len(batches)
    except Exception:  # as PyTorch Geometric's sampler raises that has no length
        return None
    return length * num_parts - iterator._num_yielded + int(iterator._peaksight_reading.num_kept)


def reading_of_step() -> Reading | None:
    """How the one loader is read that batches come from; None where nobody reads any, or several are read."""
    iterators = [iterator for reading in _readings if (iterator := reading()) is not None]
    goes_on = [each for each in iterators if each._peaksight_reading.goes_on]
    if len(goes_on) != 1 or isinstance(goes_on[0]._dataset, IterableDataset):
        return None
    return goes_on[0]._peaksight_reading


def _ahead_by_one(loader: Any, is_last: bool) -> int | None:
    """Of one of accelerate's, which has read the next batch already, or knows that there is none."""
    left = batches_left(loader.base_dataloader)
    return 0 if is_last else left + 1 if left is not None else None


def install(patches: Patches, follow: Follow, worst: WorstBatches | None = None) -> None:
    """Read every DataLoader in this process until `patches` is left, with `worst` batches in place of its own.

    `follow` is called with each loader that is read from its begin, and answers what to call with every batch.
    """
    fetch = _BaseDataLoaderIter.__next__
    patches.set(DataLoader, "_get_iterator", lambda loader: _in_process_iterator(loader, follow, worst))
    patches.set(_BaseDataLoaderIter, "__next__", lambda iterator: _fetch(fetch, iterator))
    if worst is not None:
        patches.callback(worst.tell_unused)


def _in_process_iterator(loader: DataLoader[Any], follow: Follow, worst: WorstBatches | None) -> Iterator[Any]:
    on_batch = follow(loader)
    if loader.num_workers > 1 and isinstance(loader.dataset, IterableDataset):
        return _in_turn([_iterator_of(loader, worker, on_batch, worst) for worker in range(loader.num_workers)])
    return _iterator_of(loader, 0, on_batch, worst)


def _iterator_of(
    loader: DataLoader[Any], worker: int, on_batch: Callable[[Any], None], worst: WorstBatches | None
) -> Iterator[Any]:
    """What `worker` of `loader` reads, or the loader itself if it has none."""
    alone = copy.copy(loader)
    vars(alone).update(num_workers=0, timeout=0, pin_memory=False, prefetch_factor=None, persistent_workers=False)
    info = _worker_info(alone, worker, loader.num_workers) if loader.num_workers else None
    with _in_worker(info):
        if info is not None and loader.worker_init_fn is not None:
            loader.worker_init_fn(worker)
        iterator: Any = _SingleProcessDataLoaderIter(alone)
        _last_reading[loader] = ref(iterator)
        _readings.append(_last_reading[loader])
        iterator._peaksight_reading = Reading(iterator, partial(_in_worker, info), on_batch, pins=loader.pin_memory)
        if worst is not None:
            iterator._sampler_iter = worst.instead_of(iterator._sampler_iter, loader)
    return iterator


def _worker_info(loader: DataLoader[Any], worker: int, num_workers: int) -> torch_worker.WorkerInfo:
    """What `get_worker_info()` answers in a worker, which has a dataset of its own."""
    vars(loader)["dataset"] = _copy_for_worker(loader.dataset)
    return torch_worker.WorkerInfo(
        id=worker, num_workers=num_workers, seed=torch.initial_seed() + worker, dataset=loader.dataset
    )


def _copy_for_worker(dataset: Any) -> Any:
    """What a worker changes in its dataset, such as its share, is its own; the data itself is not copied."""
    try:
        return copy.copy(dataset)
    except Exception:  # whatever a class of the script's does when it is copied
        return dataset


def _in_turn(iterators: list[Iterator[Any]]) -> Iterator[Any]:
    """One batch of each worker after the other, until all are through."""
    while iterators:
        for iterator in iterators[:]:
            try:
                yield next(iterator)
            except StopIteration:
                iterators.remove(iterator)


def _fetch(fetch: Any, iterator: Any) -> Any:
    reading: Reading | None = getattr(iterator, "_peaksight_reading", None)
    return fetch(iterator) if reading is None else reading.give(fetch)


@contextmanager
def _in_worker(info: torch_worker.WorkerInfo | None) -> Iterator[None]:
    """What happens inside is done by the worker of `info`, where all is real; without one by the script itself."""
    before = torch_worker._worker_info
    torch_worker._worker_info = info
    try:
        with ExitStack() as away_from_the_card:
            if info is not None:
                away_from_the_card.enter_context(function_modes_off())
                away_from_the_card.enter_context(modes_off())
            yield
    finally:
        torch_worker._worker_info = before
