"""`Join` of torch, as `with ddp.join():` has it: a rank whose input ends answers the others until theirs does."""

from functools import wraps
from typing import Any

from torch.distributed.algorithms.join import Join

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.ranks import process_group


def install(patches: Patches) -> None:
    """Tell of each end as of a collective, until `patches` is left: by then ranks have called as many as they like."""

    @wraps(Join.__exit__)
    def told(join: Any, failure: Any, *more: Any) -> Any:
        if failure is None and join._enable and isinstance(join._process_group, process_group.SameRanks):
            process_group.called(join._process_group, "join", ())
        return leave(join, failure, *more)

    leave = patches.set(Join, "__exit__", told)
