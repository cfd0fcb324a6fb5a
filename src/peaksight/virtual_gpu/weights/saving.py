"""Saving and loading in a simulated run: checkpoints cost no disk, and the run loads what it has saved.

`torch.save` keeps what it is given in memory, fake tensors as their shapes, and writes a token in its place;
`torch.load` of a token gives a copy back.
"""

import io
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol
from uuid import uuid4

import torch
from torch import nn

from peaksight.overlays.patches import Patches
from peaksight.records import Phase
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.mapped import LARGE_NUMEL, untouched
from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

TOKEN = b"peaksight saved checkpoint "


class Files(Protocol):
    """Where the run's files are: `script.Scratch`, or `RealFiles` where nothing is redirected."""

    def redirect_read(self, path: Any) -> str:
        """Where to read what the script sees at `path`, by other means than `open`."""

    def declare(self, token: bytes, num_bytes: int) -> None:
        """A file that begins with `token` has `num_bytes` in its place in a real run."""

    def met(self, ranks: str, *, is_barrier: bool) -> None:
        """A collective of `ranks` was called."""


class RealFiles:
    """Files as they are."""

    def redirect_read(self, path: Any) -> str:
        """Where it is."""
        return os.fspath(path)

    def declare(self, token: bytes, num_bytes: int) -> None:
        """Nobody asks."""

    def met(self, ranks: str, *, is_barrier: bool) -> None:
        """All ranks see them anyway."""


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor in a checkpoint: its real values, or only what a fake one has."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    is_parameter: bool
    values: torch.Tensor | None

    @staticmethod
    def of(tensor: torch.Tensor) -> "SavedTensor":
        """What is kept of `tensor`."""
        is_parameter = isinstance(tensor, nn.Parameter)
        known = known_value(tensor)
        copied = None if known is None else known.detach().clone()
        values = None if isinstance(copied, FakeTensor) else copied  # of a mapped file
        return SavedTensor(tuple(tensor.shape), tensor.dtype, tensor.device, tensor.requires_grad, is_parameter, values)

    def restore(self, map_location: Any) -> torch.Tensor:
        """A new tensor, where `map_location` puts it: anything that `torch.load` takes."""
        device = _location(self.device, map_location)
        if self.values is not None:
            tensor = self.values.to(device, copy=True)
        elif device.type == "cpu" and torch.Size(self.shape).numel() >= LARGE_NUMEL:
            tensor = untouched(self.shape, self.dtype)
        else:
            tensor = torch.empty(self.shape, dtype=self.dtype, device=device)
        if self.is_parameter:
            return nn.Parameter(tensor, self.requires_grad)
        return tensor.requires_grad_(self.requires_grad)


def _location(device: torch.device, map_location: Any) -> torch.device:
    """Where `map_location` puts what was on `device`."""
    if isinstance(map_location, (str, torch.device)):
        return torch.device(map_location)
    if isinstance(map_location, dict):
        return torch.device(map_location.get(str(device), device))
    mapped = None if map_location is None else map_location(torch.UntypedStorage(0), str(device))
    return device if mapped is None else mapped.device


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[SavedTensor] = []
        self._indices: dict[Any, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not isinstance(obj, torch.Tensor):
            return None
        key = _memory_of(obj)
        if key not in self._indices:
            self._indices[key] = len(self.tensors)
            self.tensors.append(SavedTensor.of(obj))
        return self._indices[key]


def _memory_of(tensor: torch.Tensor) -> Any:
    """Tells tensors apart by the memory that they view: tied weights are saved once."""
    if tensor.layout != torch.strided:
        return id(tensor)
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


class _Unpickler(pickle.Unpickler):
    def __init__(self, checkpoint: "Checkpoint", map_location: Any) -> None:
        super().__init__(io.BytesIO(checkpoint.structure))
        self._restore = cache(lambda index: checkpoint.tensors[index].restore(map_location))

    def persistent_load(self, index: int) -> torch.Tensor:
        return self._restore(index)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One saved object: its pickle without tensors, and the tensors."""

    structure: bytes
    tensors: tuple[SavedTensor, ...]

    @staticmethod
    def of(obj: Any) -> "Checkpoint":
        """What `torch.save(obj, ...)` would write."""
        buffer = io.BytesIO()
        pickler = _Pickler(buffer)
        pickler.dump(obj)
        return Checkpoint(buffer.getvalue(), tuple(pickler.tensors))

    @property
    def num_bytes(self) -> int:
        """The size of the file of a real run, but for its index."""
        return len(self.structure) + sum(_num_bytes(t.shape, t.dtype) for t in self.tensors)

    def load(self, map_location: Any) -> Any:
        """A copy of what was saved."""
        return _Unpickler(self, map_location).load()


def _num_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return torch.Size(shape).numel() * dtype.itemsize


class Checkpoints:
    """What the job has saved, by the token in its file."""

    def __init__(self, files: Files, loop: TrainingLoop, saved: dict[bytes, Checkpoint]) -> None:
        """`files` is told how large in a real run what each token stands for is; `saved` has those of other ranks."""
        self._files, self._loop = files, loop
        self._saved = saved

    def save(self, obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        """`torch.save` to a path or a file object."""
        with self._loop.within(Phase.SAVE):
            checkpoint = Checkpoint.of(obj)
        token = TOKEN + uuid4().hex.encode()
        self._saved[token] = checkpoint
        self._files.declare(token, checkpoint.num_bytes)
        if hasattr(f, "write"):
            f.write(token)
            return
        with open(f, "wb") as file:
            file.write(token)

    def loader(self, load: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.load`: a checkpoint of this run, else what `load` reads."""

        def load_saved(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            checkpoint = self._saved.get(_head(f))
            return load(f, map_location, *args, **kwargs) if checkpoint is None else checkpoint.load(map_location)

        return load_saved


def _head(f: Any) -> bytes:
    """The first bytes of a path or file object, which is left where it was."""
    length = len(TOKEN) + 32
    if not hasattr(f, "read"):
        with open(f, "rb") as file:
            return file.read(length)
    if not hasattr(f, "seek"):
        return b""
    at = f.tell()
    head = f.read(length)
    f.seek(at)
    return head


def install(patches: Patches, files: Files, loop: TrainingLoop, saved: dict[bytes, Checkpoint]) -> None:
    """Save and load without data until `patches` is left."""
    checkpoints = Checkpoints(files, loop, saved)
    load = checkpoints.loader(torch.load)
    for owner in (torch, torch.serialization):
        patches.set(owner, "save", checkpoints.save)
        patches.set(owner, "load", load)
