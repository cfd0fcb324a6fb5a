"""Results of operators made again, from what FakeTensorMode's cache knows of them.

torch's way from a cache entry to a tensor allows for symbolic shapes, logging and a dispatch in the middle of another,
and takes most of the time of a small operator. Here it is one call for the shape and one for the class.
"""

from typing import TYPE_CHECKING, Any

import torch

from peaksight.virtual_gpu.tensors.cache_key import cache_key
from peaksight.virtual_gpu.tensors.devices import META
from peaksight.virtual_gpu.tensors.subclasses import MAKE_SUBCLASS
from peaksight.virtual_gpu.torch_private import BypassDispatchCache, CachedResult, FakeTensor, FakeTensorMode

if TYPE_CHECKING:
    from peaksight.virtual_gpu.tensors.mode import VirtualGpuMode

UNKNOWN: Any = object()


class CachedResults:
    """The results that a mode has seen before; `known` is the entry that the last one was made from, or None."""

    def __init__(self, mode: "VirtualGpuMode") -> None:
        """Results are tensors of `mode`."""
        self._mode = mode
        self.known: Any = None
        self._attributes: dict[torch.device, dict[str, Any]] = {}

    def result(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What `func(*args, **kwargs)` returns, made anew; UNKNOWN where that has to be computed."""
        self.known = None
        try:
            key: Any = cache_key(func, args, kwargs)
        except BypassDispatchCache:
            return UNKNOWN
        entry = FakeTensorMode.cache.get(key)
        if type(entry) is not CachedResult:
            return UNKNOWN
        self.known = entry
        if entry.is_output_tuple:
            return tuple(self._output(info, args) for info in entry.output_infos)
        return self._output(entry.output_infos[0], args)

    def _output(self, info: Any, args: Any) -> Any:
        """As `_get_output_tensor_from_cache_entry`: an argument, no tensor, a new tensor or a view."""
        if info.inplace_idx is not None:
            return args[info.inplace_idx]
        about = info.metadata
        if about is None:
            return info.constant_value
        size, stride = about.shape, about.stride
        tensor = torch.empty_strided(size, stride, dtype=about.dtype, device=META)
        if about.is_conj:
            torch._C._set_conj(tensor, True)
        if about.is_neg:
            torch._C._set_neg(tensor, True)
        if info.view_idx is not None:
            tensor.set_(args[info.view_idx].untyped_storage(), about.storage_offset, size, stride)
        return self._fake(tensor, about.device, about.requires_grad)

    def _fake(self, tensor: torch.Tensor, device: torch.device, requires_grad: bool) -> FakeTensor:
        """`FakeTensor(mode, tensor, device)`: its attributes are those of any other on `device`."""
        if device not in self._attributes:
            self._attributes[device] = dict(vars(FakeTensor(self._mode, tensor, device)))
        fake: FakeTensor = MAKE_SUBCLASS(
            FakeTensor, tensor, requires_grad, dispatch_device=True, device_for_backend_keys=device
        )
        torch._C._set_throw_on_mutable_data_ptr(fake)
        vars(fake).update(self._attributes[device])
        return fake
