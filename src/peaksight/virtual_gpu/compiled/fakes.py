"""The device trick for the fake tensors of PyTorch's compiler; see Note [The device trick] in tensors/devices.py.

The compiler makes fake modes of its own, and wraps their tensors to take mutation out. What of these C++ asks for its
device is told `meta:k`, and what is made for `meta:k` is on `cuda:k`.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part
from peaksight.virtual_gpu.tensors.devices import PRIM_DEVICE, cpp_device, for_cpp, for_python
from peaksight.virtual_gpu.torch_private import FakeTensor, FakeTensorMode

# Positions in the arguments of `torch.Tensor._make_wrapper_subclass` behind the class.
_DEVICE, _DISPATCH_DEVICE = 6, 10


def install(patches: Patches) -> None:
    """Answer for the compiler's tensors until `patches` is left."""
    patches.set(FakeTensorMode, "avoid_device_init", property(lambda mode: True))
    patches.set(FakeTensorMode, "dispatch", _answering(FakeTensorMode.dispatch))
    functional = part("torch._subclasses.functional_tensor")
    proxies = part("torch.fx.experimental.proxy_tensor")
    for owner in (functional.FunctionalTensor, functional.FunctionalTensorMode):
        patches.set(owner, "__torch_dispatch__", _answering(owner.__torch_dispatch__))
    tracing = proxies.ProxyTorchDispatchMode
    patches.set(tracing, "__torch_dispatch__", _answering(_without_constants(tracing.__torch_dispatch__, proxies)))
    make = _asked_for_device(torch.Tensor._make_wrapper_subclass, functional.FunctionalTensor)
    patches.set(torch.Tensor, "_make_wrapper_subclass", staticmethod(make))
    patches.set(functional.FunctionalTensor, "device", property(lambda tensor: for_python(_device_in_cpp(tensor))))


def _answering(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    def answer(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is PRIM_DEVICE:
            return _device_in_cpp(args[0])
        kwargs = dict(kwargs) if kwargs else {}
        if "device" in kwargs:
            kwargs["device"] = for_python(kwargs["device"])
        return dispatch(self, func, types, args, kwargs)

    return answer


def _without_constants(dispatch: Callable[..., Any], proxies: Any) -> Callable[..., Any]:
    """What a script writes as a number is computed while a graph is traced, but not on a card that is not there."""

    def traced(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        devices = (each for each in (*args, *kwargs.values()) if isinstance(each, torch.device))
        if all(device.type == "cpu" for device in devices):
            return dispatch(self, func, types, args, kwargs)
        with Patches() as patches:
            patches.set(proxies, "CONSTANT_NUMEL_LIMIT", -1)
            return dispatch(self, func, types, args, kwargs)

    return traced


def _device_in_cpp(tensor: Any) -> torch.device:
    """The device of a fake tensor, maybe in a wrapper or two; one that is being made has nothing in it yet."""
    if isinstance(tensor, FakeTensor):
        return cpp_device(tensor)
    if isinstance(tensor, part("torch._subclasses.functional_tensor").FunctionalTensor):
        return _device_in_cpp(tensor.elem) if "elem" in vars(tensor) else torch.device("meta", 0)
    if torch._is_functional_tensor(tensor):
        return _device_in_cpp(torch._from_functional_tensor(tensor))
    return for_cpp(tensor.device)


def _asked_for_device(make: Callable[..., Any], asked: type) -> Callable[..., Any]:
    """`make`, which has tensors of the class `asked` answer for their device in Python."""

    def make_asked(cls: type, *args: Any, **kwargs: Any) -> Any:
        if cls is asked:
            given = list(args)
            given[_DEVICE], given[_DISPATCH_DEVICE] = for_python(args[_DEVICE]), True
            return make(cls, *given, **kwargs)
        return make(cls, *args, **kwargs)

    return make_asked
