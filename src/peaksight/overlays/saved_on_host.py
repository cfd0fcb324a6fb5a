"""What is saved for the backward pass waits for it in host memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from peaksight.overlays.patches import Patches

# Smaller ones are not worth a copy: the time of one is that of its launch.
MIN_BYTES = 2**20


def apply(patches: Patches, note: Callable[[], None], *, pin_memory: bool = True) -> None:
    """Copy what autograd saves inside of modules to the host until `patches` is left, and back when it is needed.

    Parameters and what is on the host already stay where they are, as do tensors below `MIN_BYTES`.
    """

    def pack(tensor: torch.Tensor) -> Any:
        if not _is_worth_it(tensor):
            return tensor
        note()
        packed = torch.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=pin_memory)
        packed.copy_(tensor)
        return tensor.device, packed

    def unpack(packed: Any) -> torch.Tensor:
        if isinstance(packed, torch.Tensor):
            return packed
        device, tensor = packed
        return tensor.to(device, non_blocking=pin_memory)

    call = nn.Module.__call__
    depth = 0

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        if depth or not torch.is_grad_enabled():
            return call(module, *args, **kwargs)
        depth += 1
        try:
            with saved_tensors_hooks(pack, unpack):
                return call(module, *args, **kwargs)
        finally:
            depth -= 1

    patches.set(nn.Module, "__call__", called)


def _is_worth_it(tensor: torch.Tensor) -> bool:
    base = tensor if tensor._base is None else tensor._base
    return tensor.is_cuda and not isinstance(base, nn.Parameter) and tensor.nbytes >= MIN_BYTES
