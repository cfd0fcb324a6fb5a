"""Lazy modules: parameters and buffers whose shapes the first batch tells (torch.nn.LazyLinear and its kin).

They are real, of no elements, until then. Where they were moved to is remembered, and what `materialize` makes there is
fake, as every other parameter.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.torch_private import FakeTensor, swap

Uninitialized: Any = torch.nn.parameter.UninitializedTensorMixin  # type: ignore[attr-defined]
T = torch.Tensor
MOVES = {T.to, T.cuda, T.cpu, T.half, T.float, T.double, T.bfloat16}
HOME = "_peaksight_home"


def install(patches: Patches, made: Callable[[Any], None]) -> None:
    """Answer for `UninitializedTensorMixin` until `patches` is left; `made` is told of every parameter."""
    asked = Uninitialized.__torch_function__.__func__
    patches.set(Uninitialized, "__torch_function__", classmethod(_remembering_moves(asked)))
    patches.set(Uninitialized, "materialize", _making_at_home(Uninitialized.materialize, made))
    for kind in (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer):
        patches.set(kind, "__new__", staticmethod(_on_the_host(kind.__new__)))


def _remembering_moves(call: Callable[..., Any]) -> Callable[..., Any]:
    def moved(
        cls: type,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func not in MOVES:
            return call(cls, func, types, args, kwargs)
        empty = torch.empty(0, **_home(args[0]))
        setattr(args[0], HOME, func(empty, *args[1:], **(kwargs or {})))
        return args[0]

    return moved


def _making_at_home(materialize: Callable[..., None], made: Callable[[Any], None]) -> Callable[..., None]:
    def made_at_home(tensor: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        home = _home(tensor)
        data = torch.empty(shape, device=device or home["device"], dtype=dtype or home["dtype"])
        is_parameter = isinstance(tensor, nn.Parameter)
        data = nn.Parameter(data, tensor.requires_grad) if is_parameter else data
        if not isinstance(data, FakeTensor):
            return materialize(tensor, shape, data.device, data.dtype)
        tensor.__class__ = type(data)
        swap(tensor, data)
        if is_parameter:
            made(tensor)

    return made_at_home


def _on_the_host(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make` asked for a tensor of no elements on the card gives one on the host that has its home there."""

    def made_on_the_host(cls: type, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        made = make(cls, requires_grad, "cpu", dtype)
        setattr(made, HOME, torch.empty(0, device=device, dtype=dtype))
        return made

    return made_on_the_host


def _home(tensor: Any) -> dict[str, Any]:
    home = getattr(tensor, HOME, tensor.data)
    return {"device": home.device, "dtype": home.dtype}
