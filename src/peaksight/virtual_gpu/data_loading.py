"""The data pipeline runs for real, in this process: batches are made with no mode on.

Worker processes change no shape: a loader with workers is read as its first worker would read it
(`get_worker_info()` answers), so that nothing is forked, pinned or prefetched.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils import worker as torch_worker
from torch.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.torch_private import function_modes_off, modes_off


def install(patches: Patches) -> None:
    """Read every DataLoader in this process until `patches` is left."""
    fetch = _BaseDataLoaderIter.__next__
    patches.set(DataLoader, "_get_iterator", _in_process_iterator)
    patches.set(_BaseDataLoaderIter, "__next__", lambda iterator: _fetch(fetch, iterator))


def _in_process_iterator(loader: DataLoader) -> Iterator[Any]:
    alone = copy.copy(loader)
    vars(alone).update(num_workers=0, timeout=0, pin_memory=False, prefetch_factor=None, persistent_workers=False)
    iterator = _SingleProcessDataLoaderIter(alone)
    if loader.num_workers:
        vars(iterator)["_peaksight_worker"] = torch_worker.WorkerInfo(
            id=0, num_workers=loader.num_workers, seed=torch.initial_seed(), dataset=loader.dataset
        )
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(0)
    return iterator


def _fetch(fetch: Any, iterator: Any) -> Any:
    before = torch_worker._worker_info
    torch_worker._worker_info = getattr(iterator, "_peaksight_worker", None)
    try:
        with function_modes_off(), modes_off():
            return fetch(iterator)
    finally:
        torch_worker._worker_info = before
