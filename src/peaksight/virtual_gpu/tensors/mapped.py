"""Host memory without pages: mapped files of weights, and stand-ins for what came from the card.

Such tensors are real, and what is read of them is loaded from the file then and there. A copy would load all of it, so
those of large floating-point tensors in large files are fake: a 13 GB checkpoint is cast without being read. A file of
less than 256 MiB, which may well be data whose values decide shapes, is copied for real. A copy of a large stand-in is
another one.
"""

import mmap
import sys
from collections.abc import Iterable, Sequence
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

# By the address at which a mapping starts, where it ends.
_files: dict[int, int] = {}
_stand_ins: dict[int, int] = {}


def map_file(filename: Any, num_bytes: int) -> torch.UntypedStorage:
    """The first `num_bytes` of the file; what is written to them stays in memory."""
    if not num_bytes:
        return torch.UntypedStorage(0)
    with open(filename, "rb") as file:
        storage = _mapping(file.fileno(), num_bytes, FLAGS)
    return _noted(storage, _files) if num_bytes >= LARGE_FILE_BYTES else storage


def untouched(shape: Iterable[int], dtype: torch.dtype) -> torch.Tensor:
    """A real tensor of zeros on the CPU, not an empty one, that takes no memory before it is written or read."""
    size = torch.Size(shape)
    storage = _noted(_mapping(-1, size.numel() * dtype.itemsize, FLAGS | mmap.MAP_ANONYMOUS), _stand_ins)
    return torch.empty(0, dtype=dtype).set_(storage).view(size)


def _mapping(descriptor: int, num_bytes: int, flags: int) -> torch.UntypedStorage:
    pages = mmap.mmap(descriptor, num_bytes, flags=flags)
    return torch.frombuffer(pages, dtype=torch.uint8).untyped_storage()


def _noted(storage: torch.UntypedStorage, mappings: dict[int, int]) -> torch.UntypedStorage:
    start = storage.data_ptr()
    mappings[start] = start + storage.nbytes()
    finalize(storage, mappings.pop, start, None).atexit = False
    return storage


def copies_file(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether `func(*args)` would load a large tensor of a file to copy it."""
    return func in COPIES and any(_is_in(_files, source) for source in _sources(args))


def copy_of_stand_ins(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """What stands in for `func(*args)` where it copies nothing but large stand-ins; None otherwise."""
    if func not in COPIES or not _stand_ins or not all(_is_in(_stand_ins, source) for source in _sources(args)):
        return None
    shapes = [source.to("meta") for source in _sources(args)]
    kwargs = {name: value for name, value in kwargs.items() if name not in ("device", "pin_memory")}
    copied = func(shapes if isinstance(args[0], (list, tuple)) else shapes[0], *args[1:], **kwargs)
    return untouched(copied.shape, copied.dtype)


def _sources(args: tuple[Any, ...]) -> Sequence[torch.Tensor]:
    return args[0] if isinstance(args[0], (list, tuple)) else args[:1]


def _is_in(mappings: dict[int, int], tensor: torch.Tensor) -> bool:
    if not tensor.is_floating_point() or tensor.layout != torch.strided or tensor.numel() < LARGE_NUMEL:
        return False
    address = tensor.untyped_storage().data_ptr()
    return any(start <= address < end for start, end in mappings.items())
