"""Host memory without pages: mapped files of weights, and stand-ins for what came from the card.

Such tensors are real, and what is read of them is loaded from the file then and there. A copy would load all of it, so
those of large floating-point tensors in large files are fake: a 13 GB checkpoint is cast without being read. A file of
less than 256 MiB, which may well be data whose values decide shapes, is copied for real.
"""

import mmap
import sys
from collections.abc import Iterable
from typing import Any
from weakref import finalize

import torch

from peaksight.units import MIB

aten = torch.ops.aten

COPIES = {aten._to_copy.default, aten.clone.default, aten.cat.default, aten.stack.default}
LARGE_NUMEL = 1 << 16
LARGE_FILE_BYTES = 256 * MIB

# Private and writable, as torch maps files; nothing is reserved, so that a file may be larger than the memory.
FLAGS = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

_ends: dict[int, int] = {}  # by the address at which a mapping starts


def map_file(filename: Any, num_bytes: int) -> torch.UntypedStorage:
    """The first `num_bytes` of the file; what is written to them stays in memory."""
    if not num_bytes:
        return torch.UntypedStorage(0)
    with open(filename, "rb") as file:
        storage = _mapping(file.fileno(), num_bytes, FLAGS)
    return _noted(storage) if num_bytes >= LARGE_FILE_BYTES else storage


def untouched(shape: Iterable[int], dtype: torch.dtype) -> torch.Tensor:
    """A real tensor of zeros on the CPU, not an empty one, that takes no memory before it is written or read."""
    size = torch.Size(shape)
    storage = _noted(_mapping(-1, size.numel() * dtype.itemsize, FLAGS | mmap.MAP_ANONYMOUS))
    return torch.empty(0, dtype=dtype).set_(storage).view(size)


def _mapping(descriptor: int, num_bytes: int, flags: int) -> torch.UntypedStorage:
    pages = mmap.mmap(descriptor, num_bytes, flags=flags)
    return torch.frombuffer(pages, dtype=torch.uint8).untyped_storage()


def _noted(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    start = storage.data_ptr()
    _ends[start] = start + storage.nbytes()
    finalize(storage, _ends.pop, start, None).atexit = False
    return storage


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
