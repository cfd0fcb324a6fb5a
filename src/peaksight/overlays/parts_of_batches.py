"""DataLoaders that give each of their batches in parts: the same samples in the same order, fewer at a time."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from torch.utils.data import DataLoader, IterableDataset

from peaksight.overlays.patches import Patches

_SPLIT = "_split_by_plan"


class Part(NamedTuple):
    """A part of a batch: `share` is that of its samples, `is_whole` one that is alone, `is_last` the last one."""

    share: float
    is_whole: bool
    is_last: bool


class SplitSampler:
    """The batches of a sampler of batches, each in `parts` that are as even as they can be; as long as the sampler.

    A batch of fewer samples has that many parts. What was taken and not yet used waits in `taken`, in its order.
    """

    def __init__(self, sampler: Any, parts: int, *, counts_parts: bool) -> None:
        """With `counts_parts`, the length is that of all parts if every batch has as many."""
        self._sampler, self._parts, self._counts_parts = sampler, parts, counts_parts
        self.taken: deque[Part] = deque()

    def __iter__(self) -> Iterator[list[Any]]:
        """The indices of the samples of each part."""
        self.taken.clear()
        for batch in self._sampler:
            parts = evenly(list(batch), self._parts)
            for index, part in enumerate(parts):
                self.taken.append(Part(len(part) / len(batch), len(parts) == 1, index == len(parts) - 1))
                yield part

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self._sampler) * (self._parts if self._counts_parts else 1)


def evenly(samples: Sequence[Any], parts: int) -> list[list[Any]]:
    """`samples` in at most `parts` pieces, none empty, the longer ones first."""
    size, longer = divmod(len(samples), parts)
    sizes = [size + (index < longer) for index in range(parts)]
    starts = [sum(sizes[:index]) for index in range(parts)]
    return [list(samples[start : start + size]) for start, size in zip(starts, sizes, strict=True) if size]


def can_split(loader: DataLoader[Any]) -> bool:
    """Whether `loader` collates batches of a dataset with indices."""
    return loader.batch_sampler is not None and not isinstance(loader.dataset, IterableDataset)


def split(loader: DataLoader[Any], parts: int, *, counts_parts: bool = False) -> None:
    """Let `loader`, which `can_split`, give its batches in parts while `install` is in force."""
    vars(loader)[_SPLIT] = SplitSampler(loader.batch_sampler, parts, counts_parts=counts_parts)


def parts_per_batch(loader: DataLoader[Any]) -> int:
    """In how many parts `loader` gives each batch that its length counts."""
    sampler = vars(loader).get(_SPLIT)
    return 1 if sampler is None or sampler._counts_parts else sampler._parts


def split_numbered(patches: Patches, parts: int, loaders: Collection[int]) -> None:
    """Split those DataLoaders which are the first, second, ... (0, 1, ...) that are read, until `patches` is left."""
    when_read(patches, loaders, partial(split, parts=parts))


def when_read(patches: Patches, loaders: Collection[int], act: Callable[[DataLoader[Any]], None]) -> None:
    """Call `act` with each loader that `can_split` and has one of these numbers, before it is first read.

    Those that are read are numbered from 0 on, until `patches` is left.
    """
    numbers: WeakKeyDictionary[DataLoader[Any], int] = WeakKeyDictionary()
    numbering = count()
    read = DataLoader.__iter__

    def read_numbered(loader: DataLoader[Any]) -> Iterator[Any]:
        if loader not in numbers:
            numbers[loader] = next(numbering)
            if numbers[loader] in loaders and can_split(loader):
                act(loader)
        return read(loader)

    patches.set(DataLoader, "__iter__", read_numbered)


def install(patches: Patches, on_part: Callable[[Part | None], None]) -> None:
    """Give the batches of loaders that are `split` in parts, until `patches` is left.

    `on_part` is told of each that the script goes on with, and of None when it has read all.
    """
    unsplit = vars(DataLoader)["_index_sampler"]
    read = DataLoader.__iter__

    def sampler_of(loader: DataLoader[Any]) -> Any:
        return vars(loader).get(_SPLIT) or unsplit.__get__(loader)

    def read_parts(loader: DataLoader[Any]) -> Iterator[Any]:
        iterator = read(loader)
        sampler = vars(loader).get(_SPLIT)
        return iterator if sampler is None else _followed(iterator, sampler, on_part)

    patches.set(DataLoader, "_index_sampler", property(sampler_of))
    patches.set(DataLoader, "__iter__", read_parts)


def _followed(iterator: Iterator[Any], sampler: SplitSampler, on_part: Callable[[Part | None], None]) -> Iterator[Any]:
    for batch in iterator:
        on_part(sampler.taken.popleft())
        yield batch
    on_part(None)
