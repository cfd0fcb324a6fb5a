"""`--worst-batch`: every batch is made of the longest samples, as the rare one that ends a run at step 9,000."""

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from peaksight.virtual_gpu.training.extents import extent_of

MAX_INDICES = 1_000_000
MAX_SAMPLES = 10_000
MAX_SECONDS = 30.0


class WorstBatches:
    """Chooses the indices of the longest samples for every DataLoader; `note(text)` says where it could not."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """No loader was seen yet."""
        self._note = note
        self._chosen: WeakKeyDictionary[DataLoader[Any], Any] = WeakKeyDictionary()
        self._has_seen_any = False

    def tell_unused(self) -> None:
        """At the end of the run: say so if the script has read no DataLoader."""
        if not self._has_seen_any:
            self._note("the script read no DataLoader, so its batches are its own")

    def instead_of(self, indices: Iterator[Any], loader: DataLoader[Any]) -> Iterator[Any]:
        """As many batches of indices as in `indices` of `loader`, and as large, but of the longest samples.

        Without automatic batching, these are single indices. Samples are read where this is called.
        """
        self._has_seen_any = True
        if isinstance(loader.dataset, IterableDataset):
            self._note(f"{_name(loader)} is iterable, so there are no samples to choose from")
            return indices
        if loader not in self._chosen:
            self._chosen[loader] = self._choose(loader)
        chosen = self._chosen[loader]
        if not _is_batched(loader):
            return (chosen[0] for _ in indices)
        if _combines(loader):
            return (list(itertools.islice(itertools.cycle(chosen), len(batch))) for batch in indices)
        return (chosen for _ in indices)

    def _choose(self, loader: DataLoader[Any]) -> Any:
        """The longest samples first; of a sampler that makes its batches by itself, the one that pads to most."""
        sampler: Any = loader.batch_sampler
        if not _combines(loader):
            batches = list(itertools.islice(sampler, MAX_INDICES))
            lengths = self._lengths(loader, itertools.chain(*batches))
            return max(batches, key=_padded_size(lengths), default=[])
        lengths = self._lengths(
            loader, itertools.islice(sampler.sampler if sampler is not None else loader.sampler, MAX_INDICES)
        )
        longest = sorted(lengths, key=lambda index: -lengths[index])
        return longest[: sampler.batch_size] if sampler is not None else longest

    def _lengths(self, loader: DataLoader[Any], indices: Iterable[Any]) -> dict[Any, int]:
        """The length of each sample, in an order without one, until there are enough."""
        candidates = list(dict.fromkeys(indices))
        random.Random(0).shuffle(candidates)
        end, lengths = time.monotonic() + MAX_SECONDS, dict[Any, int]()
        for index in candidates[:MAX_SAMPLES]:
            lengths[index] = extent_of(loader.dataset[index]).elements
            if time.monotonic() > end:
                break
        if len(lengths) < len(candidates):
            self._note(f"the longest of {len(lengths)} samples that were read of {len(candidates)} in {_name(loader)}")
        return lengths


def _padded_size(lengths: dict[Any, int]) -> Callable[[list[Any]], int]:
    return lambda batch: len(batch) * max((lengths.get(index, 0) for index in batch), default=0)


def _is_batched(loader: DataLoader[Any]) -> bool:
    return loader.batch_sampler is not None


def _combines(loader: DataLoader[Any]) -> bool:
    """Whether any of its samples may meet in a batch."""
    return not _is_batched(loader) or type(loader.batch_sampler) is BatchSampler


def _name(loader: DataLoader[Any]) -> str:
    return type(loader.dataset).__name__
