"""Runs what a script computes in float64, or without random masks, below autograd and whatever the script says."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from peaksight.records.training import Job

_aten = torch.ops.aten
_NARROW = {torch.float32, torch.float16, torch.bfloat16}
# Draws whose numbers would be others in float64: they are drawn in float32.
_DRAWN_IN_PLACE = {_aten.normal_, _aten.uniform_, _aten.exponential_, _aten.cauchy_, _aten.log_normal_}
_DRAWN_LIKE = {_aten.randn_like, _aten.rand_like}
# What compares the dtypes of its input and of its weights before any operator is called.
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)


class Arithmetic(TorchDispatchMode):
    """What `Job.double` and `Job.masks` ask for.

    An operator that meets float64 gets all its numbers as
    float64; a conversion of float64 to something narrower does not happen.

    Limitations:
        Masks made with `torch.rand` are drawn as ever.
    """

    def __init__(self, job: Job) -> None:
        """Compute as `job` asks."""
        super().__init__()
        self._double = job.double
        self._masks = job.masks

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Answer one operator."""
        kwargs = kwargs or {}
        if self._double and _has_double(args, kwargs):
            args, kwargs = _widen(func, args, kwargs)
        mask = _MASKS.get(func.overloadpacket)
        return mask(self, func, args, kwargs) if mask else self._call(func, args, kwargs)

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        packet = func.overloadpacket
        if self._double and packet in _DRAWN_IN_PLACE and args[0].dtype is torch.float64:
            drawn = torch.empty_like(args[0], dtype=torch.float32)
            return args[0].copy_(func(drawn, *args[1:], **kwargs))
        if self._double and packet in _DRAWN_LIKE and args[0].dtype is torch.float64:
            return func(args[0].float(), *args[1:], **kwargs | {"dtype": torch.float32}).double()
        return func(*args, **kwargs)

    def _bernoulli(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`bernoulli_(p)`: the mask of dropout on the CPU and of stochastic depth."""
        keep = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
        if not isinstance(keep, float) or self._masks == "own":
            return func(*args, **kwargs)
        if self._masks == "mean":
            return args[0].fill_(keep)
        return args[0].copy_(torch.rand(args[0].shape, device=args[0].device) >= 1 - keep)

    def _native_dropout(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor, rate, train = args
        if self._masks == "own" or train is False:
            return func(*args, **kwargs)
        if self._masks == "mean":
            return tensor.clone(), torch.ones_like(tensor, dtype=torch.bool)
        mask = torch.rand(tensor.shape, device=tensor.device) >= rate
        return tensor * mask / (1 - rate), mask

    def _native_dropout_backward(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return func(*args[:2], 1.0) if self._masks == "mean" else func(*args, **kwargs)


def widen_inputs() -> None:
    """Have convolutions and recurrent layers take float32 beside weights in float64, in this process, for good.

    Operators do under `Arithmetic`, but these refuse it before: ATen/native/Convolution.cpp, torch/nn/modules/rnn.py.
    """
    for module in (torch, nn.functional):
        for name in _CONVOLUTIONS:
            setattr(module, name, _widening(getattr(module, name)))
    for kind in _RECURRENT:
        kind.forward = _widening(kind.forward)  # type: ignore[method-assign]


def _widening(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        weights = [list(each.parameters()) for each in args[:1] if isinstance(each, nn.Module)]
        if _has_double((args, weights), kwargs):
            args, kwargs = _wide(args), _wide(kwargs)
        return real(*args, **kwargs)

    return call


def keep_autocast_off() -> None:
    """Have `torch.autocast` change nothing in this process, for good: it would round inputs that are not in float64."""
    real = torch.amp.autocast_mode.autocast.__enter__

    @functools.wraps(real)
    def enter(context: torch.amp.autocast_mode.autocast) -> Any:
        entered = real(context)
        torch.set_autocast_enabled(context.device, False)
        return entered

    torch.amp.autocast_mode.autocast.__enter__ = enter  # type: ignore[method-assign]


_MASKS: dict[Any, Callable[[Arithmetic, Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    _aten.bernoulli_: Arithmetic._bernoulli,
    _aten.native_dropout: Arithmetic._native_dropout,
    _aten.native_dropout_backward: Arithmetic._native_dropout_backward,
}


def _has_double(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    found = False

    def look(tensor: Tensor) -> Tensor:
        nonlocal found
        found = found or tensor.dtype is torch.float64
        return tensor

    tree_map_only(Tensor, look, (args, kwargs))
    return found


def _widen(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`args` and `kwargs` with what is read in float64; what is written keeps its dtype."""
    written = {
        argument.name for argument in func._schema.arguments if argument.alias_info and argument.alias_info.is_write
    }
    named = [argument.name for argument in func._schema.arguments]
    args = tuple(each if name in written else _wide(each) for name, each in zip(named, args, strict=False))
    return args, {name: each if name in written else _wide(each) for name, each in kwargs.items()}


def _wide(content: Any) -> Any:
    if content in _NARROW if isinstance(content, torch.dtype) else False:
        return torch.float64
    return tree_map_only(Tensor, lambda each: each.double() if each.dtype in _NARROW else each, content)
