"""The data pipeline runs for real, in this process: batches are made with no mode on.

Worker processes change no shape: a loader with workers is read as its first worker would read it
(`get_worker_info()` answers), so that nothing is forked, pinned or prefetched.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.torch_private import function_modes_off, modes_off
from peaksight.virtual_gpu.worst_batch import WorstBatches


def install(patches: Patches, worst: WorstBatches | None = None) -> None:
    """Read every DataLoader in this process until `patches` is left, with `worst` batches in place of its own."""
    fetch = _BaseDataLoaderIter.__next__
    patches.set(DataLoader, "_get_iterator", lambda loader: _in_process_iterator(loader, worst))
    patches.set(_BaseDataLoaderIter, "__next__", lambda iterator: _fetch(fetch, iterator))
    if worst is not None:
        patches.callback(worst.tell_unused)


def _in_process_iterator(loader: DataLoader, worst: WorstBatches | None) -> Iterator[Any]:
    alone = copy.copy(loader)
    vars(alone).update(num_workers=0, timeout=0, pin_memory=False, prefetch_factor=None, persistent_workers=False)
    iterator = _SingleProcessDataLoaderIter(alone)
    if loader.num_workers:
        vars(iterator)["_peaksight_worker"] = torch_worker.WorkerInfo(
            id=0, num_workers=loader.num_workers, seed=torch.initial_seed(), dataset=loader.dataset
        )
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(0)
    if worst is not None:
        with _as_worker_of(iterator):
            vars(iterator)["_sampler_iter"] = worst.instead_of(iterator._sampler_iter, loader)
    return iterator


def _fetch(fetch: Any, iterator: Any) -> Any:
    with _as_worker_of(iterator):
        return fetch(iterator)


@contextmanager
def _as_worker_of(iterator: Any) -> Iterator[None]:
    """What happens inside is real, and done by the first worker."""
    before = torch_worker._worker_info
    torch_worker._worker_info = getattr(iterator, "_peaksight_worker", None)
    try:
        with function_modes_off(), modes_off():
            yield
    finally:
        torch_worker._worker_info = before
