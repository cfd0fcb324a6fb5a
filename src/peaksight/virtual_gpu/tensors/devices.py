"""How a virtual CUDA device is named: Python reads `cuda:k`, C++ sees `meta:k`.

Note [The device trick]
A FakeTensor answers C++ `device()` through `prim.device`. Answering `meta:k` there keeps the autograd engine,
AccumulateGrad and streams away from CUDA device guards, which a build or a machine without a GPU cannot serve.
Factories called from C++ then ask for `meta:k`; the mode maps a meta device with an index back to `cuda:k`.
A meta device without an index stays what it is: transformers and accelerate use it.
"""

from functools import cache
from threading import local
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import fake_device_of

META = torch.device("meta")
PRIM_DEVICE = torch.ops.prim.device.default


class _Current(local):
    """The device that a thread means where it names none."""

    index = 0


_current = _Current()


def current_device() -> int:
    """The index of the current device of this thread, zero to begin with."""
    return _current.index


def exchange_device(index: int) -> int:
    """Make device `index` the current one of this thread; returns the one before."""
    before, _current.index = _current.index, index
    return before


def cpp_device(tensor: Any) -> torch.device:
    """What C++ is told about the device of a FakeTensor."""
    if tensor.fake_mode.in_kernel_invocation:
        return META
    return _for_cpp(fake_device_of(tensor))


@cache
def _for_cpp(device: torch.device) -> torch.device:
    return torch.device("meta", device.index or 0) if device.type == "cuda" else device


def for_cpp(device: Any) -> Any:
    """`meta:k` for whatever names a CUDA device (`"cuda"`, `torch.device("cuda:1")`, 1); anything else unchanged."""
    if isinstance(device, int) and not isinstance(device, bool):
        return torch.device("meta", device)
    if isinstance(device, str) and device.partition(":")[0] == "cuda":
        device = torch.device(device)
    if isinstance(device, torch.device) and device.type == "cuda":
        return torch.device("meta", _current.index if device.index is None else device.index)
    return device


def for_python(device: Any) -> Any:
    """`cuda:k` for `meta:k`; anything else unchanged."""
    if isinstance(device, torch.device) and device.type == "meta" and device.index is not None:
        return torch.device("cuda", device.index)
    return device


def is_virtual_cuda(value: Any) -> bool:
    """Whether `value` is a tensor on the virtual GPU; a DTensor says `meta:k` where no mode is on that translates."""
    return isinstance(value, torch.Tensor) and for_python(value.device).type == "cuda"
