"""Copies of fake tensors: `copy.deepcopy` (an EMA of the model) and `pickle`."""

import copy
from typing import Any

import torch
from torch import nn

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.weights.saving import SavedTensor


def install(patches: Patches) -> None:
    """Copy fake tensors without their mode until `patches` is left."""
    patches.set(FakeTensor, "__deepcopy__", _deep_copy)
    patches.set(FakeTensor, "__reduce_ex__", _reduce)


def _deep_copy(tensor: Any, memo: dict[int, Any]) -> torch.Tensor:
    """What `Tensor.__deepcopy__` does: a clone with a copy of the gradient, made once for tied tensors.

    Tensors that share a storage, as tied weights in a `state_dict`, share that of their copies, too.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol at the moment.")
    copied = _of_shared_storage(tensor, memo)
    if isinstance(tensor, nn.Parameter):
        copied = nn.Parameter(copied, tensor.requires_grad)
    memo[id(tensor)] = copied.requires_grad_(tensor.requires_grad)
    if tensor.grad is not None:
        copied.grad = copy.deepcopy(tensor.grad, memo)
    return copied


def _of_shared_storage(tensor: Any, memo: dict[Any, Any]) -> torch.Tensor:
    """A clone, or a view of the one in `memo` of the same storage, where `UntypedStorage.__deepcopy__` has it."""
    storages = memo.setdefault("torch", {})
    place = tensor.untyped_storage()._cdata
    if place in storages and storages[place].numel() >= tensor.storage_offset() + tensor.numel():
        return storages[place].as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    copied = tensor.detach().clone()
    if copied.numel() == tensor.untyped_storage().nbytes() // tensor.element_size():
        storages[place] = copied
    return copied


def _reduce(tensor: torch.Tensor, protocol: Any) -> tuple[Any, ...]:
    return SavedTensor.restore, (SavedTensor.of(tensor), None)
