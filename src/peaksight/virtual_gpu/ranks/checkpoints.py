"""torch.distributed.checkpoint: each rank saves what it has, as the only one, and loads that.

The coordinator joins the plans of all ranks to a whole tensor. Those of ranks that are not there are unknown: as copies
of its own they would be taken for duplicates.
"""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches


def install(patches: Patches) -> None:
    """Ask no other rank for its plan until `patches` is left; a release without these names goes without."""

    def ask_nobody(module: ModuleType) -> None:
        wrapper = getattr(module, "_DistWrapper", None)
        if wrapper is not None:
            patches.set(wrapper, "__init__", _alone(wrapper.__init__))

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


def _alone(make: Callable[..., None]) -> Callable[..., None]:
    @wraps(make)
    def made(wrapper: Any, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        make(wrapper, group, False, coordinator_rank)

    return made
