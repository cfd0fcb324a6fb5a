"""Host memory without pages: mapped files of weights, and stand-ins for what came from the card.

Such tensors are real, and what is read of them is loaded from the file then and there. A copy of a large one would
load all of it, so the copies of floating-point tensors are fake: a 13 GB checkpoint is cast without being read.
"""

import mmap
from collections.abc import Iterable
from typing import Any
from weakref import finalize

import torch

aten = torch.ops.aten

COPIES = {aten._to_copy.default, aten.clone.default, aten.cat.default, aten.stack.default}
LARGE_NUMEL = 1 << 16

_ends: dict[int, int] = {}  # by the address at which a mapping starts


def note_mapping(storage: torch.UntypedStorage) -> None:
    """The pages of `storage`, and of its slices, are loaded when they are touched."""
    start = storage.data_ptr()
    if start:
        _ends[start] = start + storage.nbytes()
        finalize(storage, _ends.pop, start, None).atexit = False


def untouched(shape: Iterable[int], dtype: torch.dtype) -> torch.Tensor:
    """A real tensor of zeros on the CPU that takes no memory before it is written or read."""
    size = torch.Size(shape)
    tensor = torch.frombuffer(mmap.mmap(-1, size.numel() * dtype.itemsize), dtype=dtype).view(size)
    note_mapping(tensor.untyped_storage())
    return tensor


def copies_mapped(func: Any, args: tuple) -> bool:
    """Whether `func(*args)` would load a large mapped tensor to copy it."""
    if func not in COPIES:
        return False
    sources = args[0] if isinstance(args[0], (list, tuple)) else args[:1]
    return any(_is_large(source) and _is_mapped(source.untyped_storage().data_ptr()) for source in sources)


def _is_large(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and tensor.layout == torch.strided and tensor.numel() >= LARGE_NUMEL


def _is_mapped(address: int) -> bool:
    return any(start <= address < end for start, end in _ends.items())
