"""Sharded tensors on the virtual GPU: DTensors draw no random numbers, and of a thousand shards one is made."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

Context = Callable[[], AbstractContextManager[None]]


def install(patches: Patches, unrecorded: Context) -> None:
    """Help DTensor and FSDP2 until `patches` is left; a release that has not these names goes without.

    DTensor asks for the shape of a whole result with fake tensors of whole arguments: under `unrecorded()`, for on a
    card they take no memory.
    """

    def ask_beside_the_run(module: ModuleType) -> None:
        ask: Any = getattr(module.ShardingPropagator, "_propagate_tensor_meta_non_cached", None)

        def asked(*args: Any) -> Any:
            with unrecorded():
                return ask(*args)

        if ask is not None:
            patches.set(module.ShardingPropagator, "_propagate_tensor_meta_non_cached", asked)
        look = getattr(module, "_propagate_use_strided_shard_flag", None)
        if look is not None:
            patches.set(module, "_propagate_use_strided_shard_flag", _where_strided(look))

    def draw_nothing(module: ModuleType) -> None:
        tracker = module.OffsetBasedRNGTracker
        patches.set(tracker, "_get_device_state", lambda tracker: torch.zeros(16, dtype=torch.uint8))
        patches.set(tracker, "_distribute_region", lambda *args, **kwargs: nullcontext())
        patches.set(module, "_rng_tracker", None)

    def chunk_lazily(module: ModuleType) -> None:
        if hasattr(module, "_chunk_with_empty"):
            patches.set(module, "_chunk_with_empty", Chunks)

    change_modules(
        patches,
        {
            "torch.distributed.tensor._random": draw_nothing,
            "torch.distributed.tensor._sharding_prop": ask_beside_the_run,
            "torch.distributed.fsdp._fully_shard._fsdp_param": chunk_lazily,
        },
    )


def _where_strided(propagate: Callable[..., None]) -> Callable[..., None]:
    """`propagate` looks at all tensors of a call once for each of them: a thousand parameters are a million looks."""
    asked: Any = None
    strided = False

    @wraps(propagate)
    def ask(strategy: Any, schema: Any) -> None:
        nonlocal asked, strided
        if schema is not asked:
            asked, strided = schema, any(map(_is_strided, schema.args_spec))
        if strided:
            propagate(strategy, schema)

    return ask


def _is_strided(spec: Any) -> bool:
    return any(hasattr(placement, "split_factor") for placement in spec.placements)


class Chunks:
    """What `torch.chunk(tensor, num_chunks, dim)` returns, with empty ones at the end, each made when it is asked for.

    FSDP2 asks for the one of its rank and for the first.
    """

    def __init__(self, tensor: torch.Tensor, num_chunks: int, dim: int) -> None:
        """As `_chunk_with_empty` of FSDP2."""
        self._tensor, self._dim = tensor, dim
        self._length = tensor.size(dim)
        self._size = -(-self._length // num_chunks)

    def __getitem__(self, index: int) -> torch.Tensor:
        """One of them, a view unless it is empty."""
        start = index * self._size
        if start >= self._length > 0:
            return self._tensor.new_empty(0)
        return self._tensor.narrow(self._dim, start, min(self._size, self._length - start))
