"""Results of operators made again, from what FakeTensorMode's cache knows of them.

torch's way from a cache entry to a tensor allows for symbolic shapes, logging and a dispatch in the middle of another,
and takes most of the time of a small operator. Here it is one call for the shape and one for the class.
"""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import torch

from peaksight.virtual_gpu.tensors.cache_key import cache_key
from peaksight.virtual_gpu.tensors.devices import META
from peaksight.virtual_gpu.tensors.subclasses import MAKE_SUBCLASS
from peaksight.virtual_gpu.torch_private import BypassDispatchCache, CachedResult, FakeTensor, FakeTensorMode

if TYPE_CHECKING:
    from peaksight.virtual_gpu.tensors.mode import VirtualGpuMode

UNKNOWN: Any = object()


class Kind:
    """Calls of one operator with arguments alike, told from others by its identity; `make` makes what they return."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[Any], Any]) -> None:
        """`make` is called with the arguments of a call."""
        self.make = make


class CachedResults:
    """The results that a mode has seen before; `known` is the kind of the last one, None where it was not known."""

    def __init__(self, mode: "VirtualGpuMode") -> None:
        """Results are tensors of `mode`."""
        self._mode = mode
        self.known: Kind | None = None
        self._kinds: dict[Any, Kind] = {}
        self._attributes: dict[torch.device, dict[str, Any]] = {}

    def result(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What `func(*args, **kwargs)` returns, made anew; UNKNOWN where that has to be computed."""
        self.known = None
        try:
            key: Any = cache_key(func, args, kwargs)
        except BypassDispatchCache:
            return UNKNOWN
        kind = self._kinds.get(key)
        if kind is None:
            entry = FakeTensorMode.cache.get(key)
            if type(entry) is not CachedResult:
                return UNKNOWN
            kind = self._kinds[key] = Kind(self._maker_of_all(entry))
        self.known = kind
        return kind.make(args)

    def _maker_of_all(self, entry: Any) -> Callable[[Any], Any]:
        makers = tuple(map(self._maker, entry.output_infos))
        return (lambda args: tuple(make(args) for make in makers)) if entry.is_output_tuple else makers[0]

    def _maker(self, info: Any) -> Callable[[Any], Any]:
        """As `_get_output_tensor_from_cache_entry`: an argument, no tensor, a new tensor or a view."""
        if info.inplace_idx is not None:
            return itemgetter(info.inplace_idx)
        if info.metadata is None:
            constant = info.constant_value
            return lambda args: constant
        return partial(_made, info.metadata, info.view_idx, self._attributes_on(info.metadata.device))

    def _attributes_on(self, device: torch.device) -> dict[str, Any]:
        """Those of every `FakeTensor(mode, tensor, device)`."""
        if device not in self._attributes:
            meta = torch.empty(0, device=META)
            self._attributes[device] = dict(vars(FakeTensor(self._mode, meta, device)))
        return self._attributes[device]


def _made(about: Any, view_idx: int | None, attributes: dict[str, Any], args: Any) -> FakeTensor:
    size, stride = about.shape, about.stride
    tensor = torch.empty_strided(size, stride, dtype=about.dtype, device=META)
    if about.is_conj:
        torch._C._set_conj(tensor, True)
    if about.is_neg:
        torch._C._set_neg(tensor, True)
    if view_idx is not None:
        tensor.set_(args[view_idx].untyped_storage(), about.storage_offset, size, stride)
    fake: FakeTensor = MAKE_SUBCLASS(
        FakeTensor, tensor, about.requires_grad, dispatch_device=True, device_for_backend_keys=about.device
    )
    torch._C._set_throw_on_mutable_data_ptr(fake)
    vars(fake).update(attributes)
    return fake
