"""The types of old: `torch.cuda.FloatTensor`, and `tensor.type()`, which names and casts to them."""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.tensors.devices import for_cpp, is_virtual_cuda

DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ShortTensor": torch.int16,
    "CharTensor": torch.int8,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


class _CudaType(type):
    """The type of `torch.cuda.FloatTensor`: its instances are the tensors on the card with its dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_virtual_cuda(instance) and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.Tensor:
        return getattr(torch, cls.__name__)(*args, **kwargs).cuda()


def install(patches: Patches) -> None:
    """Put stand-ins for the types of `torch.cuda` in place until `patches` is left."""
    for name, dtype in DTYPES.items():
        patches.set(torch.cuda, name, _CudaType(name, (), {"dtype": dtype, "__module__": "torch.cuda"}))


def rewrite_type(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`tensor.type()` and `tensor.type(wanted)`."""
    tensor = args[0]
    wanted: Any = args[1] if len(args) > 1 else kwargs.get("dtype")
    if wanted is None:
        name = func(tensor)
        return name.replace("torch.meta.", "torch.cuda.") if is_virtual_cuda(tensor) else name
    name = (
        wanted
        if isinstance(wanted, str)
        else f"{wanted.__module__}.{wanted.__name__}"
        if isinstance(wanted, type)
        else ""
    )
    package, _, type_name = name.rpartition(".")
    if package != "torch.cuda":
        return func(*args, **kwargs)
    return tensor.to(for_cpp("cuda"), DTYPES[type_name])
