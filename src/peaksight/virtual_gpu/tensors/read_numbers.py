"""Tensors in the data of `torch.tensor([loss, 0.5])`: each is read as a number, as torch does below Python's reach."""

from functools import reduce
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import FakeTensor

_OF_NUMBERS = {bool: torch.bool, int: torch.int64, complex: torch.complex64}


def read_numbers(data: Any, dtype: torch.dtype | None) -> tuple[Any, torch.dtype | None]:
    """`data` without fake tensors of one number, and the dtype it has with them; as it is where it has none."""
    if not isinstance(data, (list, tuple)) or not _has_numbers(data):
        return data, dtype
    return _read(data), dtype or reduce(torch.promote_types, _dtypes(data))


def _has_numbers(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_has_numbers(each) for each in data if isinstance(each, (list, tuple, FakeTensor)))
    return isinstance(data, FakeTensor)


def _read(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_read(each) for each in data]
    return data.item() if isinstance(data, torch.Tensor) and data.numel() == 1 else data


def _dtypes(data: Any) -> list[torch.dtype]:
    if isinstance(data, (list, tuple)):
        return [dtype for each in data for dtype in _dtypes(each)]
    return [data.dtype if isinstance(data, torch.Tensor) else _OF_NUMBERS.get(type(data), torch.get_default_dtype())]
