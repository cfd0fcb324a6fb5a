"""Python-level requests for CUDA, rewritten before any C++ device guard is asked for."""

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from peaksight.virtual_gpu.memory.at_the_limit import let_go
from peaksight.virtual_gpu.tensors.devices import for_cpp, for_python
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.read_numbers import read_numbers
from peaksight.virtual_gpu.tensors.subclasses import move
from peaksight.virtual_gpu.tensors.tensor_types import rewrite_type
from peaksight.virtual_gpu.tensors.values import host_copy
from peaksight.virtual_gpu.threads import TURN
from peaksight.virtual_gpu.timing.pinned import pin
from peaksight.virtual_gpu.torch_private import FakeTensor, default_device


class DeviceRequests(TorchFunctionMode):
    """Turns `.cuda()`, `.to("cuda")` and `device="cuda"` into requests for `meta:k`; see Note [The device trick].

    Every attribute of every tensor passes through here, so the common case is short.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Rewrite the device of one call and make it."""
        rewrite = _REWRITES.get(func)
        try:
            with TURN:
                if rewrite is not None:
                    return rewrite(func, args, kwargs or {})
                return self._call(func, args, kwargs) if kwargs else func(*args)
        except Exception as error:
            let_go(error)
            raise

    def _call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "device" in kwargs:
            kwargs = {**kwargs, "device": for_cpp(kwargs["device"])}
        if "pin_memory" in kwargs:
            made = func(*args, **{**kwargs, "pin_memory": False})
            return pin(made) if kwargs["pin_memory"] else made
        return func(*args, **kwargs)


def _keep(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """Pinned memory is host memory like any other, but for the time of copies."""
    return pin(args[0])


def _to(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    args = (args[0], *(for_cpp(a) if i == 0 else a for i, a in enumerate(args[1:])))
    kwargs = {k: for_cpp(v) if k == "device" else v for k, v in kwargs.items()}
    return func(*args, **kwargs)


def _device(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    """`torch.device(0)` is the card, of which a CPU build does not know."""
    return func(*(for_python(for_cpp(a)) if isinstance(a, int) and len(args) == 1 else a for a in args), **kwargs)


def _cuda(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    return _to_cuda(*args, **kwargs)


def _to_cuda(tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> torch.Tensor:
    where = "cuda" if device is None else device
    return _to(torch.Tensor.to, (tensor, where), {"non_blocking": non_blocking, **kwargs})


def _from_data(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """Make the tensor on the CPU and move it: `torch.tensor(data, device="meta:0")` would lose the index."""
    device = for_cpp(kwargs.get("device") if kwargs.get("device") is not None else default_device())
    if for_python(device) is device:
        return _of_numbers(func, args, kwargs)
    if args and isinstance(args[0], torch.Tensor) and func is not torch.tensor:
        return args[0].to(device, dtype=kwargs.get("dtype") or args[0].dtype)
    requires_grad = kwargs.pop("requires_grad", False)
    made = _of_numbers(func, args, {**kwargs, "device": "cpu"})
    return made.to(device).requires_grad_(requires_grad)


def _of_numbers(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A tensor of `args[0]`, of which the host reads the numbers that are tensors."""
    if not args:
        return func(**kwargs)
    data, dtype = read_numbers(args[0], kwargs.get("dtype"))
    return func(data, *args[1:], **({**kwargs, "dtype": dtype} if dtype is not None else kwargs))


def _new_tensor(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """`tensor.new_tensor(data)`, which has the dtype of `tensor` whatever is in `data`."""
    data = [read_numbers(each, None)[0] for each in args[1:2]]
    return func(args[0], *data, *args[2:], **{k: for_cpp(v) if k == "device" else v for k, v in kwargs.items()})


def _as_array(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A storage of a file becomes a tensor without the look at its first byte that torch takes."""
    if args and isinstance(args[0], torch.UntypedStorage) and args[0].device.type == "cpu":
        tensor = torch.empty(0, dtype=kwargs.get("dtype", torch.uint8)).set_(args[0])
        return _to(torch.Tensor.to, (tensor, kwargs.get("device") or "cpu"), {})
    return _from_data(func, args, kwargs)


def _numpy(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A parameter on the host is fake, its array is not."""
    if not isinstance(args[0], FakeTensor):
        return func(*args, **kwargs)
    if args[0].is_cuda:
        message = "Use Tensor.cpu() to copy the tensor to host memory first."
        raise TypeError(f"can't convert {args[0].device} device type tensor to numpy. {message}")
    if args[0].requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if known_value(args[0]) is None:
        mode: Any = args[0].fake_mode
        mode.made_up_value()
    return host_copy(args[0]).numpy()


def _set_data(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """`parameter.data = moved` takes the device along; of a real tensor a fake one takes the shape."""
    tensor, data = args
    if not isinstance(tensor, FakeTensor):
        (move if isinstance(data, FakeTensor) else func)(tensor, data)
        return
    mode: Any = tensor.fake_mode
    func(tensor, data if isinstance(data, FakeTensor) else mode.fake(data))
    tensor.fake_device = data.device


def _answer_device(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    """A subclass that wraps tensors, as DTensor does, is to C++ on `meta:k`."""
    return for_python(args[0].device)


_TENSOR: Any = torch.Tensor  # its descriptors


def _array(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`numpy.asarray(tensor)`."""
    if not isinstance(args[0], FakeTensor):
        return func(*args, **kwargs)
    array = _numpy(torch.Tensor.numpy, args[:1], {})
    return array.astype(*args[1:], copy=False) if args[1:] else array


_REWRITES: dict[Callable[..., Any], Callable[..., Any]] = {
    _TENSOR.device.__get__: _answer_device,
    _TENSOR.is_cuda.__get__: lambda func, args, kwargs: for_python(args[0].device).type == "cuda",
    _TENSOR.is_meta.__get__: lambda func, args, kwargs: for_python(args[0].device).type == "meta",
    _TENSOR.data.__set__: _set_data,
    torch.device: _device,
    torch.Tensor.pin_memory: _keep,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.to: _to,
    torch.Tensor.type: rewrite_type,
    torch.Tensor.new_tensor: _new_tensor,
    torch.Tensor.numpy: _numpy,
    torch.Tensor.__array__: _array,
    torch.tensor: _from_data,
    torch.as_tensor: _from_data,
    torch.asarray: _as_array,
    torch.scalar_tensor: _from_data,
}
