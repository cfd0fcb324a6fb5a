"""What a call of an operator is to the virtual GPU: whether it concerns the card or writes to the host."""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.torch_private import is_composite
from peaksight.virtual_gpu.tensors.making import is_parameter_in_the_making
from peaksight.virtual_gpu.tensors.mapped import copies_file
from peaksight.virtual_gpu.tensors.subclasses import is_of_host
from peaksight.virtual_gpu.torch_private import FakeTensor


def any_real(values: Iterable[Any]) -> bool:
    """Whether one of the arguments `values`, or of lists among them, is a tensor of the host."""
    return any(any_real(v) if isinstance(v, (list, tuple)) else is_real(v) for v in values)


def is_real(leaf: Any) -> bool:
    """Whether it is a strided tensor of the host, and no fake one."""
    kind: Any = type(leaf)
    return is_of_host(kind) and leaf.layout == torch.strided


def concerns_the_card(func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the call takes tensors of the card, asks for it, or makes what stands for values nobody needs."""
    if _are_fake(types):
        return True
    device = kwargs.get("device")
    if device is not None and device.type != "cpu":
        return True
    return copies_file(func, args) or is_parameter_in_the_making(func, args)


@lru_cache(maxsize=1024)
def _are_fake(types: tuple[type, ...]) -> bool:
    return any(issubclass(kind, FakeTensor) for kind in types)


@cache
def is_taken_apart(func: Any) -> bool:
    """Whether a C++ function takes the operator `func` apart on the card."""
    return isinstance(func, torch._ops.OpOverload) and is_composite(func)


def writes_first(func: Any) -> bool:
    """Whether the operator `func` writes to its first argument."""
    arguments = func._schema.arguments
    return bool(arguments) and arguments[0].alias_info is not None and arguments[0].alias_info.is_write
