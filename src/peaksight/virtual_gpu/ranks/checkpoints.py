"""torch.distributed.checkpoint: each rank saves what it has, as the only one, and loads that.

The coordinator joins the plans of all ranks to a whole tensor. Those of ranks that are not there are unknown: as copies
of its own they would be taken for duplicates.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import torch.distributed as dist

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

Note = Callable[..., None]


def install(patches: Patches, note: Note) -> None:
    """Ask no other rank for its plan until `patches` is left; a release without these names goes without.

    `note` is `Approximations.note`.
    """

    def ask_nobody(module: ModuleType) -> None:
        wrapper = getattr(module, "_DistWrapper", None)
        if wrapper is not None:
            patches.set(wrapper, "__init__", _alone(wrapper.__init__, note))

    def take_parts(module: ModuleType) -> None:
        if hasattr(module, "_validate_global_plan"):
            patches.set(module, "_validate_global_plan", lambda plan, metadata: [])

    change_modules(
        patches,
        {
            "torch.distributed.checkpoint.utils": ask_nobody,
            "torch.distributed.checkpoint.default_planner": take_parts,
        },
    )


def _alone(make: Callable[..., None], note: Note) -> Callable[..., None]:
    """One is made for each checkpoint that is saved or loaded."""

    @wraps(make)
    def made(wrapper: Any, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        if use_dist and dist.get_world_size(group) > 1:
            note("sharded-checkpoints", at_most_bytes=0)
        make(wrapper, group, False, coordinator_rank)

    return made
