"""What is known of a tensor's values, kept on it and on its views until somebody writes what cannot be followed."""

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.virtual_gpu.torch_private import FakeTensor


class Family:
    """Shared by a value and its views: one write that cannot be followed makes all of them unknown.

    One of random numbers makes them `by_chance`. If it `repeats`, some elements are kept once for many. Many numbers
    that come from the host, as of samples, are `is_data`: pointwise operators are followed on them, and no others.
    """

    __slots__ = ("by_chance", "is_data", "repeats", "valid")

    def __init__(self, *, repeats: bool = False) -> None:
        """As long as nobody writes what cannot be followed."""
        self.valid = True
        self.by_chance = False
        self.is_data = False
        self.repeats = repeats


def known_value(tensor: Any) -> torch.Tensor | None:
    """The real values of `tensor`, on the CPU, or None."""
    if not isinstance(tensor, FakeTensor):
        return tensor if tensor.device.type == "cpu" else None
    value, family = getattr(tensor, "_peaksight_value", (None, None))
    return value if family is not None and family.valid else None


def is_by_chance(tensor: Any) -> bool:
    """Whether the known values of `tensor` come from random numbers of the card, which would be others there."""
    family = family_of(tensor)
    return family is not None and family.valid and family.by_chance


def is_data(tensor: Any) -> bool:
    """Whether `tensor` has many known numbers, of samples that come from the host."""
    family = family_of(tensor)
    return family is not None and family.valid and family.is_data


def family_of(tensor: Any) -> Family | None:
    """What the values of `tensor` and of its views have in common."""
    return getattr(tensor, "_peaksight_value", (None, None))[1]


def is_noted(tensor: Any) -> bool:
    """Whether anything was attached to `tensor`, be it valid or not."""
    return "_peaksight_value" in vars(tensor)


def attach(tensor: Any, value: torch.Tensor | None, family: Family) -> None:
    """`tensor` is `value` as long as `family` is valid."""
    tensor._peaksight_value = (value, family)


def forget(tensors: Any) -> None:
    """The values of the tensors in `tensors`, and of their views, are not known any more."""
    for tensor in tree_leaves(tensors):
        family = family_of(tensor)
        if family is not None:
            family.valid = False
