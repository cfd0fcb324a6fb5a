"""What torch itself answers otherwise on the virtual GPU: fake tensors are not announced."""

from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.approximations import Approximations
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.tensors.devices import PRIM_DEVICE, cpp_device
from peaksight.virtual_gpu.tensors.results import refuse_ragged
from peaksight.virtual_gpu.torch_private import (
    FakeTensor,
    default_device,
    fake_tensor,
    modes_off,
    storage_device,
    subclasses,
)


class _NobodysTensor:
    """Nothing is an instance of it."""


def install(patches: Patches, devices: Devices, approximations: Approximations, lines: SourceLines) -> None:
    """Answer for a card until `patches` is left."""
    _answer_device(patches)
    _answer_addresses(patches, devices)
    _follow_storages(patches, devices)
    _follow_streams(patches, devices, approximations, lines)
    _keep_buffers_on_host(patches)
    patches.set(FakeTensor, "__format__", _format)
    patches.set(FakeTensor, "get_nested_int", refuse_ragged)
    patches.callback(torch.set_default_device, default_device())
    # Libraries ask `isinstance(x, torch._subclasses.FakeTensor)` to find out that they are being traced, and skip
    # what depends on values; the card does not skip it.
    patches.set(subclasses, "FakeTensor", _NobodysTensor)
    # The script gets the exception of an operator that fails; torch would log how its fake kernel failed besides.
    patches.set(fake_tensor.log, "disabled", True)


def _answer_device(patches: Patches) -> None:
    """Ask the fake device where torch asks C++; see Note [The device trick]."""
    patches.set(fake_tensor, "init_gpu_context", lambda device: None)
    dispatch = FakeTensor.__torch_dispatch__

    def dispatch_without_mode(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cpp_device(args[0]) if func is PRIM_DEVICE else dispatch(func, types, args, kwargs)

    patches.set(FakeTensor, "__torch_dispatch__", classmethod(dispatch_without_mode))
    patches.set(FakeTensor, "is_cuda", property(lambda tensor: tensor.fake_device.type == "cuda"))
    patches.set(FakeTensor, "is_meta", property(lambda tensor: tensor.device.type == "meta"))
    patches.set(FakeTensor, "is_cpu", property(lambda tensor: tensor.fake_device.type == "cpu"))
    patches.set(
        FakeTensor, "get_device", lambda tensor: -1 if tensor.fake_device.index is None else tensor.fake_device.index
    )


def _format(tensor: Any, spec: str) -> str:
    """`f"{loss:.3f}"` formats the value of a tensor that has one, which `Tensor.__format__` denies subclasses."""
    if tensor.dim() == 0 and not tensor.is_meta:
        return format(tensor.detach().item(), spec)
    return object.__format__(tensor, spec)


def _answer_addresses(patches: Patches, devices: Devices) -> None:
    """The address of a storage is that of its block; one without a block has an address that is only its own."""
    real = torch.UntypedStorage.data_ptr

    def storage_address(storage: torch.UntypedStorage) -> int:
        if not _has_no_data(storage):
            return real(storage)
        ledger = devices.holding(storage)
        birth = None if ledger is None else ledger.storages.of(storage)
        return storage._cdata if birth is None else birth.block.address

    def tensor_address(tensor: FakeTensor) -> int:
        return storage_address(tensor.untyped_storage()) + int(tensor.storage_offset()) * tensor.itemsize

    patches.set(torch.UntypedStorage, "data_ptr", storage_address)
    patches.set(FakeTensor, "data_ptr", tensor_address)


def _has_no_data(storage: Any) -> bool:
    return storage_device(storage).type == "meta"


def _follow_streams(patches: Patches, devices: Devices, approximations: Approximations, lines: SourceLines) -> None:
    """A block that another stream uses is reused when that is done, by predicted times."""

    def record_stream(tensor: FakeTensor, stream: Any) -> None:
        birth = devices.birth_of(tensor)
        if birth is None:
            return
        streams = devices.ledgers[tensor.fake_device.index].recorded_streams
        if streams.record(birth, stream.stream_id):
            approximations.note("record-stream", lines.current().source)

    patches.set(FakeTensor, "record_stream", record_stream)


def _follow_storages(patches: Patches, devices: Devices) -> None:
    """`storage.resize_` is no operator: FSDP and hand-written offloading free tensors by it."""
    resize = torch.UntypedStorage.resize_

    def followed(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        resized: Any = resize(storage, size)
        if _has_no_data(storage):
            held_by = devices.holding(storage) or vars(storage).get("_peaksight_freed_by", devices.current)
            held_by.storages.resized(storage, "storage.resize_")
            resized._peaksight_freed_by = held_by
        return resized

    patches.set(torch.UntypedStorage, "resize_", followed)


def _keep_buffers_on_host(patches: Patches) -> None:
    """A storage over a buffer, as pickled objects are sent in, holds its bytes; in a fake mode it would be on meta."""
    from_buffer = torch.UntypedStorage.from_buffer

    def on_host(*args: Any, **kwargs: Any) -> torch.UntypedStorage:
        with modes_off():
            return from_buffer(*args, **kwargs)

    patches.set(torch.UntypedStorage, "from_buffer", staticmethod(on_host))
