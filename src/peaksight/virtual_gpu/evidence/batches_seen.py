"""The batches that the script's DataLoaders give: how many samples were asked for, and what came."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch.utils.data import DataLoader

from peaksight.records import BatchFact
from peaksight.virtual_gpu.memory.births import in_words
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

# Of each loader the first batches of a step are kept, of each batch the largest tensors, not nested deeper than that.
MAX_BATCHES = 32
MAX_TENSORS = 8
MAX_DEPTH = 4


class Asked(NamedTuple):
    """A loader's number, how many samples it was asked for, and its length; nothing that keeps it or its data alive."""

    loader: int
    batch_size: int
    num_batches: int


class BatchesSeen:
    """Rows for each card, whose ticks are its own."""

    def __init__(self, devices: Devices, loop: TrainingLoop, lines: SourceLines) -> None:
        """No loader was read yet."""
        self._devices, self._loop, self._lines = devices, loop, lines
        self._numbers: WeakKeyDictionary[DataLoader[Any], int] = WeakKeyDictionary()
        self._next_number = count()
        self._num_seen: Counter[tuple[int, int]] = Counter()
        self.facts: dict[int, list[BatchFact]] = defaultdict(list)

    def asked(self, loader: DataLoader[Any]) -> Asked:
        """`loader` is read from its begin, once more or for the first time."""
        if loader not in self._numbers:
            self._numbers[loader] = next(self._next_number)
        return Asked(self._numbers[loader], _batch_size(loader), _num_batches(loader))

    def gave(self, asked: Asked, batch: Any) -> None:
        """A loader gives `batch` to the line that is running."""
        step = self._loop.step
        self._num_seen[step, asked.loader] += 1
        if self._num_seen[step, asked.loader] > MAX_BATCHES:
            return
        tensors = sorted(_tensors(batch), key=lambda tensor: (-tensor.nbytes, -tensor.ndim))
        for device, ledger in enumerate(self._devices.ledgers):
            self.facts[device].append(
                BatchFact(
                    tick=ledger.tick,
                    step=step,
                    loader=asked.loader,
                    at=self._lines.current().source,
                    batch_size=asked.batch_size,
                    bytes=sum(tensor.nbytes for tensor in tensors),
                    shapes="; ".join(map(in_words, tensors[:MAX_TENSORS])),
                    num_batches=asked.num_batches,
                )
            )


def _batch_size(loader: DataLoader[Any]) -> int:
    """What `loader`, or the sampler that makes its batches, was asked for; 0 where neither says."""
    size = loader.batch_size or getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else 0


def _num_batches(loader: DataLoader[Any]) -> int:
    """How many batches `loader` says that it gives; 0 where it, its sampler or its dataset does not know."""
    try:
        return len(loader)
    except Exception:  # whatever a sampler of the script's does that is asked for its length
        return 0


def _tensors(batch: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Those in `batch`, in what it maps to, lists, or keeps as the attributes of an object with keys."""
    if isinstance(batch, torch.Tensor):
        if batch.layout == torch.strided:
            yield batch
    elif depth < MAX_DEPTH:
        for part in _parts(batch):
            yield from _tensors(part, depth + 1)


def _parts(batch: Any) -> Iterable[Any]:
    if isinstance(batch, str | bytes):
        return ()
    if hasattr(batch, "keys") and hasattr(batch, "__getitem__"):
        return [batch[key] for key in batch.keys()]  # noqa: SIM118 (not every one is a Mapping)
    if isinstance(batch, Sequence):
        return batch
    return getattr(batch, "__dict__", {}).values()
