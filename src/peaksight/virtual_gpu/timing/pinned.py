"""Which tensors the script has in page-locked memory: nothing is pinned here, but copies take another time."""

from collections import defaultdict
from typing import Any
from weakref import finalize

import torch

from peaksight.virtual_gpu.timing.work import tensors_in

# cudaHostAlloc takes every page from the system and locks it: an estimate.
BYTES_PINNED_PER_SECOND = 2e9


def pin(batch: Any) -> Any:
    """`batch`, whose tensors are in page-locked memory from now on; as `pin_memory` of torch.utils.data._utils."""
    values = batch.values() if isinstance(batch, dict) else (batch,)
    for tensor in tensors_in(values):
        tensor._peaksight_pinned = True  # type: ignore[attr-defined]
    return batch


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether the script has it in page-locked memory."""
    return getattr(tensor, "_peaksight_pinned", False)


class PinnedMemory:
    """What copies to the host were given, as `CachingHostAllocator`: a block serves again when it is free and not used.

    A block is as large as the next power of two.
    """

    def __init__(self) -> None:
        """Nothing is pinned yet."""
        self._until: dict[int, float] = {}
        self._free: defaultdict[int, list[float]] = defaultdict(list)

    def take(self, tensor: torch.Tensor, now: float) -> float:
        """The seconds that the host took for the memory of `tensor`: none for a block that is free `now`."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, 1 << (storage.nbytes() - 1).bit_length()
        if key in self._until:
            return 0.0
        self._until[key] = 0.0
        finalize(storage, self._give_back, key, size)
        free = self._free[size]
        if free and min(free) <= now:
            free.remove(min(free))
            return 0.0
        return size / BYTES_PINNED_PER_SECOND

    def use(self, tensor: torch.Tensor, *, until: float) -> None:
        """A stream reads or writes the memory of `tensor` until then."""
        key = tensor.untyped_storage()._cdata
        if key in self._until:
            self._until[key] = max(self._until[key], until)

    def _give_back(self, key: int, size: int) -> None:
        self._free[size].append(self._until.pop(key))
