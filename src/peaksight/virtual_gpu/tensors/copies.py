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
    """What `Parameter.__deepcopy__` does, a clone without the gradient, or `Tensor.__deepcopy__`; made once.

    The latter copies storages: whole ones, and once where tensors share one, as tied weights in a `state_dict`.
    """
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol at the moment.")
    if isinstance(tensor, nn.Parameter):
        copied: torch.Tensor = nn.Parameter(tensor.detach().clone(), tensor.requires_grad)
    else:
        copied = _of_copied_storage(tensor, memo).requires_grad_(tensor.requires_grad)
        if tensor.grad is not None:
            copied.grad = copy.deepcopy(tensor.grad, memo)
    memo[id(tensor)] = copied
    return copied


def _of_copied_storage(tensor: Any, memo: dict[Any, Any]) -> torch.Tensor:
    """A view of a copy of the whole storage; a scalar passes by, as in `new_empty([])` before the view is set."""
    storages = memo.setdefault("torch", {})
    storage = tensor.untyped_storage()
    if storage._cdata not in storages:
        whole = tensor.detach().as_strided((storage.nbytes() // tensor.element_size(),), (1,), 0)
        storages[storage._cdata] = whole.clone()
    scalar = tensor.new_empty([])
    copied = storages[storage._cdata].view(tensor.dtype)
    copied = copied.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    del scalar
    return copied


def _reduce(tensor: torch.Tensor, protocol: Any) -> tuple[Any, ...]:
    return SavedTensor.restore, (SavedTensor.of(tensor), None)
