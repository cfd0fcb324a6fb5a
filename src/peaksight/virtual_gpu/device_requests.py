"""Python-level requests for CUDA, rewritten before any C++ device guard is asked for."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from peaksight.virtual_gpu.devices import for_cpp, for_python
from peaksight.virtual_gpu.torch_private import default_device

_FROM_DATA = (torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor)
_PINNING = (torch.Tensor.pin_memory,)


class DeviceRequests(TorchFunctionMode):
    """Turns `.cuda()`, `.to("cuda")` and `device="cuda"` into requests for `meta:k`; see Note [The device trick]."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Rewrite the device of one call and make it."""
        kwargs = kwargs or {}
        if func in _PINNING:
            return args[0]
        if func is torch.Tensor.cuda:
            return _cuda(*args, **kwargs)
        if func in _FROM_DATA:
            return _from_data(func, args, kwargs)
        if func is torch.Tensor.to:
            args = (args[0], *(for_cpp(a) if i == 0 else a for i, a in enumerate(args[1:])))
        if "device" in kwargs:
            kwargs = {**kwargs, "device": for_cpp(kwargs["device"])}
        return func(*args, **kwargs)


def _cuda(tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> torch.Tensor:
    return tensor.to(for_cpp("cuda" if device is None else device), non_blocking=non_blocking, **kwargs)


def _from_data(func: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    """Make the tensor on the CPU and move it: `torch.tensor(data, device="meta:0")` would lose the index."""
    device = for_cpp(kwargs.get("device") if kwargs.get("device") is not None else default_device())
    if for_python(device) is device:
        return func(*args, **kwargs)
    if args and isinstance(args[0], torch.Tensor) and func is not torch.tensor:
        return args[0].to(device, dtype=kwargs.get("dtype") or args[0].dtype)
    requires_grad = kwargs.pop("requires_grad", False)
    made = func(*args, **{**kwargs, "device": "cpu"})
    return made.to(device).requires_grad_(requires_grad)
