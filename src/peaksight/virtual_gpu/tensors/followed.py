"""Which values are followed: those of how many elements, and by which operators."""

from typing import Any

import torch

from peaksight.virtual_gpu.tensors.drawing import DECIDING
from peaksight.virtual_gpu.tensors.known import is_data, known_value
from peaksight.virtual_gpu.tensors.repeats import keeps_repeats, num_kept
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

MAX_EXACT_NUMEL = 1 << 22
MAX_FLOAT_NUMEL = 1 << 16


def is_followed(tensor: torch.Tensor, func: Any) -> bool:
    """Whether the values of `tensor` are known, and few enough for `func` to be run on them."""
    value = known_value(tensor)
    if value is None or (is_data(tensor) and not _keeps_data(func)):
        return False
    return value.numel() <= MAX_EXACT_NUMEL or (keeps_repeats(func) and num_kept(value) <= MAX_EXACT_NUMEL)


def is_small(tensor: torch.Tensor, func: Any = None, args: tuple[Any, ...] = ()) -> bool:
    """Whether values of `tensor` are followed; masks keep theirs as floats, for what `interpolate` makes of them."""
    is_mask = (
        func in DECIDING
        or (func is aten._to_copy.default and not is_float(args[0].dtype))
        or makes_data(func, args)
        or (func is not None and func.is_view and known_value(args[0]) is not None)
    )
    limit = MAX_FLOAT_NUMEL if is_float(tensor.dtype) and not is_mask else MAX_EXACT_NUMEL
    return tensor.layout == torch.strided and tensor.numel() <= limit


def makes_data(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether `func` moves numbers to the card, as of samples and labels, but no parameter, or goes on with those."""
    if func is aten._to_copy.default and not isinstance(args[0], (FakeTensor, torch.nn.Parameter)):
        return is_float(args[0].dtype)
    return func is not None and _keeps_data(func) and any(map(is_data, args))


def _keeps_data(func: Any) -> bool:
    return func.is_view or func is aten._to_copy.default or torch.Tag.pointwise in func.tags


def is_float(dtype: torch.dtype) -> bool:
    """Whether numbers of `dtype` are no whole ones."""
    return dtype.is_floating_point or dtype.is_complex
