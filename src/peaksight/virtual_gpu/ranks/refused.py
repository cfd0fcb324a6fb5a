"""Ways of sharding that are not simulated: each is refused where the script asks for it."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.errors import UnsupportedError
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.ranks.world import World


def install(patches: Patches, world: World) -> None:
    """Refuse FSDP1 on several ranks, and DeepSpeed, until `patches` is left."""

    def refuse_fsdp1(module: ModuleType) -> None:
        wrapper = module.FullyShardedDataParallel
        patches.set(wrapper, "__init__", _of_one_rank(wrapper.__init__, world))

    def refuse_deepspeed(module: ModuleType) -> None:
        for name in ("initialize", "init_distributed"):
            patches.set(module, name, _refuse_deepspeed)

    change_modules(
        patches,
        {
            "torch.distributed.fsdp.fully_sharded_data_parallel": refuse_fsdp1,
            "deepspeed": refuse_deepspeed,
        },
    )


def _of_one_rank(make: Callable[..., None], world: World) -> Callable[..., None]:
    @wraps(make)
    def make_on_one_rank(*args: Any, **kwargs: Any) -> None:
        if world.size > 1:
            raise UnsupportedError(
                "Can't simulate FullyShardedDataParallel on several ranks: its flat parameters are not modelled. "
                "Use fully_shard (FSDP2), which replaces it.",
                slug="fsdp1",
            )
        make(*args, **kwargs)

    return make_on_one_rank


def _refuse_deepspeed(*args: Any, **kwargs: Any) -> None:
    raise UnsupportedError(
        "Can't simulate DeepSpeed: it has an engine and kernels of its own. Use fully_shard (FSDP2) or "
        "ZeroRedundancyOptimizer, which shard the same.",
        slug="deepspeed",
    )
