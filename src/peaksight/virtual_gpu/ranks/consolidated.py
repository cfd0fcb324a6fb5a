"""The state of an optimizer that ZeRO-1 gathers, `consolidate_state_dict`: what the other ranks would send."""

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_leaves, tree_map

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches


def install(patches: Patches) -> None:
    """Answer for the other ranks until `patches` is left; a release without these names goes without."""

    def change(module: ModuleType) -> None:
        optimizers = module.ZeroRedundancyOptimizer
        if hasattr(module, "_broadcast_object") and hasattr(optimizers, "_partition_parameters"):
            whole = _consolidating(module, optimizers.consolidate_state_dict)
            patches.set(optimizers, "consolidate_state_dict", whole)

    change_modules(patches, {"torch.distributed.optim.zero_redundancy_optimizer": change})


def _consolidating(module: ModuleType, consolidate: Callable[..., None]) -> Callable[..., None]:
    @wraps(consolidate)
    def consolidated(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        with Patches() as patches:
            patches.set(module, "_broadcast_object", partial(_broadcast, optimizer))
            consolidate(optimizer, *args, **kwargs)

    return consolidated


def _broadcast(optimizer: Any, obj: Any, src_rank: int, group: Any, device: torch.device) -> Any:
    """As `_broadcast_object` of torch: a length, then the bytes, from which a rank that receives makes tensors."""
    is_mine = dist.get_rank() == src_rank
    sent = obj if is_mine else _state_of(optimizer, dist.get_group_rank(group, src_rank))
    num_bytes = sum(leaf.nbytes for leaf in tree_leaves(sent) if isinstance(leaf, torch.Tensor))
    dist.broadcast(torch.zeros(1, dtype=torch.int64, device=device), src=src_rank, group=group)
    pickled = torch.empty(num_bytes, dtype=torch.uint8, device=device)
    dist.broadcast(pickled, src=src_rank, group=group)
    return obj if is_mine else tree_map(partial(_received, device=device), sent)


def _received(leaf: Any, *, device: torch.device) -> Any:
    return torch.empty_like(leaf, device=device) if isinstance(leaf, torch.Tensor) else leaf


def _state_of(optimizer: Any, rank: int) -> dict[str, Any]:
    """The state dict of the share of `rank`, whose parameters have what those of this rank have."""
    mine = optimizer.optim.state_dict()
    known = next(((p, state) for p, state in optimizer.optim.state.items() if state), None)
    state: dict[int, Any] = {}
    groups, first = [], 0
    for like, theirs in zip(mine["param_groups"], optimizer._partition_parameters()[rank], strict=True):
        numbers = range(first, first + len(theirs["params"]))
        if known is not None:
            trained = ((number, p) for number, p in zip(numbers, theirs["params"], strict=True) if p.requires_grad)
            state |= {number: _like(*known, parameter) for number, parameter in trained}
        groups.append(like | {"params": list(numbers)})
        first = numbers.stop
    return {"state": state, "param_groups": groups}


def _like(known: torch.Tensor, state: dict[str, Any], parameter: torch.Tensor) -> dict[str, Any]:
    """`state` of the parameter `known` as it is for another; on meta, for nothing holds it here."""

    def other(value: Any) -> Any:
        is_shaped = isinstance(value, torch.Tensor) and value.shape == known.shape
        return torch.empty(parameter.shape, dtype=value.dtype, device="meta") if is_shaped else value

    return {key: other(value) for key, value in state.items()}
