"""`torch.load` of files that were there before: mapped, never read.

torch's own code loads them, in its order. The files are mapped whatever the script asks for, and storages that go to
the card are made there without their data.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.devices import for_cpp, for_python
from peaksight.virtual_gpu.tensors.followed import MAX_EXACT_NUMEL
from peaksight.virtual_gpu.tensors.mapped import map_file
from peaksight.virtual_gpu.torch_private import guards, rebuilding, serialization, storage_device

SET_FROM_FILE_HEADER_BYTES = 8  # the number of elements, before the data of each storage in the format of old


def install(patches: Patches, devices: Devices) -> None:
    """Load without reading until `patches` is left."""
    load = mapping(torch.load)
    for owner in (torch, serialization):
        patches.set(owner, "load", load)
    storages = Storages(devices)
    patches.set(torch.UntypedStorage, "to", _method(storages.to))
    patches.set(torch.UntypedStorage, "_set_from_file", _method(storages.set_from_file))
    patches.set(torch.UntypedStorage, "from_file", staticmethod(_from_file))
    patches.set(torch.UntypedStorage, "device", property(device_of))
    patches.set(torch, "from_file", _tensor_from_file)


def mapping(load: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.load`, which maps what is a file with an index (zip), and reads only the rest."""

    def load_mapped(f: Any, map_location: Any = None, *args: Any, mmap: Any = None, **kwargs: Any) -> Any:
        path = _path_of_zip(f)
        with _as_on_the_card():
            if path is None:
                return load(f, map_location, *args, mmap=mmap, **kwargs)
            return load(path, map_location, *args, mmap=True, **kwargs)

    return load_mapped


def _path_of_zip(f: Any) -> Any:
    """The path of the zip file that `f`, a path or an open file, is; None for anything else."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return f if serialization._is_zipfile(file) else None
    if not serialization._should_read_directly(f) or not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
        return None
    return f"/dev/fd/{f.fileno()}" if f.tell() == 0 and serialization._is_zipfile(f) else None


@contextmanager
def _as_on_the_card() -> Iterator[None]:
    """Under a fake mode torch would load fake tensors only, and leave `map_location` alone.

    Nor can it check the indices of a sparse tensor that is fake.
    """
    with Patches() as patches:
        for name in ("active_fake_mode", "detect_fake_mode"):
            patches.set(guards, name, lambda *args: None)
        unchecked = rebuilding._sparse_tensors_to_validate
        patches.set(rebuilding, "_validate_loaded_sparse_tensors", lambda **options: unchecked.clear())
        yield


class Storages:
    """Storages of files and of the card, as `torch.load` and a script's `map_location` handle them."""

    def __init__(self, devices: Devices) -> None:
        """Those on a card are born in its ledger."""
        self._devices = devices
        self._to = torch.UntypedStorage.to
        self._read = torch.UntypedStorage._set_from_file

    def to(self, storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
        """`UntypedStorage.to`, also behind `.cuda()`: a block of the card without data."""
        device = for_python(for_cpp(torch.device(device)))
        if device.type != "cuda" or storage.device == device:
            return self._to(storage, device=device, non_blocking=non_blocking)
        self._devices.demand(device.index)
        made: Any = torch.UntypedStorage(storage.nbytes(), device="meta")
        made._peaksight_device = device
        if storage.nbytes() <= MAX_EXACT_NUMEL:
            made._peaksight_values = storage
        self._devices.ledgers[device.index].storages.born(made, "UntypedStorage.to")
        return made

    def set_from_file(self, storage: Any, file: Any, offset: Any, *args: Any) -> None:
        """Read one storage of the format of old, or skip it when it has no data."""
        if storage_device(storage).type != "meta" or hasattr(storage, "_peaksight_values"):
            self._read(getattr(storage, "_peaksight_values", storage), file, offset, *args)
        else:
            file.seek((file.tell() if offset is None else offset) + SET_FROM_FILE_HEADER_BYTES + storage.nbytes())


def device_of(storage: Any) -> torch.device:
    """`UntypedStorage.device`: that of the card for what was loaded there, otherwise what C++ says."""
    return vars(storage).get("_peaksight_device") or storage_device(storage)


def _from_file(filename: Any, shared: bool | None = False, nbytes: int = 0) -> torch.UntypedStorage:
    """`UntypedStorage.from_file`; a shared mapping makes the file as long as it is, but does not write to it."""
    if shared and (not os.path.exists(filename) or os.path.getsize(filename) < nbytes):
        with open(filename, "ab") as file:
            file.truncate(nbytes)
    return map_file(filename, nbytes)


def _tensor_from_file(filename: Any, shared: bool | None = None, size: int = 0, **options: Any) -> torch.Tensor:
    """`torch.from_file`, of which `options` only say the dtype on the CPU."""
    dtype = options.get("dtype") or torch.get_default_dtype()
    tensor = torch.empty(0, dtype=dtype).set_(_from_file(filename, shared, size * dtype.itemsize))
    return tensor.requires_grad_(options.get("requires_grad", False))


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a class, which a bound method is not."""
    return lambda storage, *args, **kwargs: function(storage, *args, **kwargs)
