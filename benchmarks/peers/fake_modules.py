"""Modules of fake tensors: converted in place, or copied to the meta device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn


@contextmanager
def convert_modules() -> Iterator[None]:
    """Let `Module.to` replace fake parameters, which `swap_tensors` refuses; tied ones stay tied."""
    memo: dict[int, tuple[Any, Any]] = {}
    depth = [0]

    def apply(self: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> nn.Module:
        depth[0] += 1
        for child in self.children() if recurse else ():
            child._apply(convert)
        _replace(self, convert, memo)
        depth[0] -= 1
        if not depth[0]:
            memo.clear()
        return self

    with patch.object(nn.Module, "_apply", apply):
        yield


def to_meta(model: nn.Module) -> nn.Module:
    """`model` itself, with plain tensors of the meta device for parameters and buffers, outside any mode."""
    memo: dict[int, tuple[Any, Any]] = {}
    for module in model.modules():
        _replace(module, _meta, memo)
    return model


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")


def _replace(
    module: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], memo: dict[int, tuple[Any, Any]]
) -> None:
    for table in (module._parameters, module._buffers):
        for name, tensor in table.items():
            if tensor is not None:
                if id(tensor) not in memo:
                    memo[id(tensor)] = (tensor, _converted(tensor, convert))
                table[name] = memo[id(tensor)][1]


def _converted(tensor: torch.Tensor, convert: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    converted = convert(tensor)
    if converted is tensor or not isinstance(tensor, nn.Parameter):
        return converted
    return nn.Parameter(converted, tensor.requires_grad)
