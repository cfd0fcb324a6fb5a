"""A lean key for FakeTensorMode's cache of operator results.

torch's own key lists seventeen fields of every tensor, symbolic shapes among them, and takes more time than all the
rest of a cached operator. Shapes are never symbolic here and every tensor is dense, so that these few decide.
"""

from collections.abc import Iterable
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import BypassDispatchCache, FakeTensor, fake_device_of, layout_of

_STRIDED = torch.strided


def cache_key(func: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What decides the metadata of `func(*args, **kwargs)`; raises BypassDispatchCache where a key cannot say it."""
    parts: list[Any] = [func, torch.get_default_dtype(), torch.is_inference_mode_enabled()]
    _describe(args, parts)
    if kwargs:
        parts.extend(kwargs)
        _describe(kwargs.values(), parts)
    if getattr(func, "is_view", True):  # another result is at the start of its storage, wherever its sources are
        parts += [tensor.storage_offset() for tensor in args if isinstance(tensor, FakeTensor)]
    return tuple(parts)


def _describe(values: Iterable[Any], parts: list[Any]) -> None:
    for value in values:
        kind = type(value)
        if kind is FakeTensor:
            if value.constant is not None or value.dispatch_keys is not None or layout_of(value) is not _STRIDED:
                raise BypassDispatchCache("constant, sparse or mkldnn tensor")
            dtype = value.dtype
            parts += (
                dtype,
                value.shape,
                value.stride(),
                fake_device_of(value),
                value.is_inference(),
                value.requires_grad,
                dtype.is_complex and value.is_conj(),
                value.is_neg(),
            )
        elif kind is list or kind is tuple:
            parts.append(len(value))
            _describe(value, parts)
        elif isinstance(value, (torch.Tensor, torch.UntypedStorage)):
            raise BypassDispatchCache("non-fake tensor, or a storage, which the cache would keep alive")
        else:
            parts.append(kind)  # 1 and 1.0 are equal, but give different dtypes
            parts.append(value)
