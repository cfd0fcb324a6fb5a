"""Subclasses of tensors that libraries bring: on the card they are fake and stay what they are.

`tv_tensors.Image`, MONAI's MetaTensor and the quantised weights of bitsandbytes only add attributes and methods to a
tensor. Their class on the card is one more: theirs, and a fake tensor. Subclasses that wrap other tensors, as DTensor,
are PyTorch's own matter.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, lru_cache
from inspect import getattr_static
from types import new_class
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.torch_private import ATTRIBUTES, FakeTensor, swap

_AS_SUBCLASS: Any = torch.Tensor.as_subclass
MAKE_SUBCLASS: Any = torch.Tensor._make_subclass
_OF_FAKES: set[str] = set()
_NO_DISPATCH: Any = torch.Tensor.__torch_dispatch__
_LAZY: Any = (torch.nn.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)


class OnCard(FakeTensor):
    """What all classes made by `on_card` are; `kind` is the library's own."""

    kind: type


class _Attributes(MutableMapping[str, Any]):
    """A tensor's attributes without those of fake tensors.

    MONAI copies all that one tensor has to another, which stays where it is.
    """

    def __init__(self, tensor: Any) -> None:
        self._all: dict[str, Any] = ATTRIBUTES.__get__(tensor)

    def __getitem__(self, name: str) -> Any:
        if name in _OF_FAKES:
            raise KeyError(name)
        return self._all[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._all[name] = value

    def __delitem__(self, name: str) -> None:
        del self._all[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._all if name not in _OF_FAKES)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return deepcopy(dict(self), memo)

    def copy(self) -> dict[str, Any]:
        """As that of a dict."""
        return dict(self)

    def replace(self, new: Mapping[str, Any]) -> None:
        """`tensor.__dict__ = new`."""
        new = dict(new)
        self.clear()
        self.update(new)


# A class that dispatches gets one from torch that does nothing; see `THPVariableMetaType_init`.
_OnCard: Any = OnCard
_OnCard.__torch_function__ = getattr_static(torch.Tensor, "__torch_function__")


@cache
def on_card(kind: Any) -> Any:
    """The class of a `kind` on the card."""
    if issubclass(kind, FakeTensor):
        return kind
    if kind in (torch.Tensor, torch.nn.Parameter):
        return FakeTensor
    about = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__dict__": property(_Attributes, lambda tensor, new: _Attributes(tensor).replace(new)),
        "kind": kind,
    }
    made: Any = new_class(kind.__name__, (kind, OnCard), exec_body=lambda names: names.update(about))
    made.__torch_function__ = getattr_static(kind, "__torch_function__")
    return made


@lru_cache(maxsize=1024)
def of_libraries(kinds: tuple[type, ...]) -> bool:
    """Whether one of `kinds`, those of the tensors of a call, is that of a library's tensors on the card."""
    return any(issubclass(kind, OnCard) for kind in kinds)


def of_library(kind: Any) -> Any:
    """The class of a `kind` on the host."""
    return kind.kind if issubclass(kind, OnCard) else kind


@cache
def is_of_host(kind: type) -> bool:
    """Whether tensors of class `kind` are real and hold what they are: not fake ones, nor those that wrap others."""
    if not issubclass(kind, torch.Tensor) or issubclass(kind, (FakeTensor, *_LAZY)):
        return False
    dispatch: Any = kind.__torch_dispatch__
    return dispatch is _NO_DISPATCH


def install(patches: Patches) -> None:
    """Let fake tensors become instances of other classes until `patches` is left."""
    patches.set(torch.Tensor, "as_subclass", _as_subclass)
    patches.set(torch.Tensor, "_make_subclass", staticmethod(_make_subclass))


def _as_subclass(tensor: Any, cls: Any) -> Any:
    if not isinstance(tensor, FakeTensor):
        return _AS_SUBCLASS(tensor, of_library(cls))
    with torch._C.DisableTorchFunctionSubclass():
        return _become(_AS_SUBCLASS(tensor, FakeTensor), cls)


def _make_subclass(cls: Any, data: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
    """With the names that Dynamo expects, of which C++ takes the third by position."""
    requires_grad = kwargs.pop("require_grad", requires_grad)
    if not isinstance(data, FakeTensor):
        return MAKE_SUBCLASS(cls if cls is FakeTensor else of_library(cls), data, requires_grad, **kwargs)
    with torch._C.DisableTorchFunctionSubclass():
        return _become(data.detach().requires_grad_(requires_grad), cls)


@contextmanager
def plain(values: Any) -> Iterator[None]:
    """While an operator runs, its arguments are fake tensors like any others: its kernel knows no library."""
    subclassed: list[tuple[Any, Any]] = [(leaf, type(leaf)) for leaf in tree_leaves(values) if isinstance(leaf, OnCard)]
    for leaf, _ in subclassed:
        leaf.__class__ = FakeTensor
    try:
        yield
    finally:
        for leaf, kind in subclassed:
            leaf.__class__ = kind


def move(tensor: Any, fake: Any) -> None:
    """`tensor.data = fake` of a real tensor: it becomes one on the card, and stays the object that it is."""
    moved = _become(fake.detach().requires_grad_(tensor.requires_grad), type(tensor))
    ATTRIBUTES.__get__(moved).update(vars(tensor))
    tensor.__class__ = type(moved)
    swap(tensor, moved)


def _become(fake: Any, cls: Any) -> Any:
    _OF_FAKES.update(ATTRIBUTES.__get__(fake))
    fake.__class__ = on_card(cls)
    if isinstance(fake, torch.nn.Parameter):
        fake._is_param = True
    return fake
