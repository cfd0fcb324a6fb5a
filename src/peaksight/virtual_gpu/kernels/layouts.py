"""Strides of tensors and of their copies, worked out without an operator: a rule must not run any."""

from collections.abc import Sequence
from math import prod

import torch


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor of `shape`."""
    return [prod(max(size, 1) for size in shape[position + 1 :]) for position in range(len(shape))]


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether every element of its memory is one element of `tensor`, in whatever order."""
    expected = 1
    strides = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted((stride, size) for stride, size in strides if size != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def strides_of_copy(tensor: torch.Tensor) -> Sequence[int]:
    """The strides of a copy that keeps the memory format."""
    return tensor.stride() if is_dense(tensor) else row_major(tensor.shape)


def contiguous_copies(*tensors: torch.Tensor) -> list[int]:
    """Bytes of the copies that `contiguous()` makes of `tensors`: none of those that are."""
    return [each.numel() * each.itemsize for each in tensors if not each.is_contiguous()]


def expanded_strides(tensor: torch.Tensor, shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of `tensor.expand(shape)`."""
    added = len(shape) - tensor.dim()
    own = (
        stride if size == wide else 0
        for size, stride, wide in zip(tensor.shape, tensor.stride(), shape[added:], strict=True)
    )
    return (*(0 for _ in range(added)), *own)
