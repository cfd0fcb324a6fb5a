"""Python objects that another rank sends: this rank goes on with those that it has."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from peaksight.overlays.patches import Patches


def install(patches: Patches) -> None:
    """Whoever is to send, this rank does, until `patches` is left.

    Limitations:
        A rank that waits for an object without one of its own (`[None]`) keeps `None`.
    """
    for name in ("broadcast_object_list", "scatter_object_list"):
        function = _sent_from_here(getattr(c10d, name))
        for owner in (dist, c10d):
            patches.set(owner, name, function)


def _sent_from_here(function: Callable) -> Callable:
    """`function` with this rank as the source, so that it calls the collectives that the others call."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def send(*args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs).arguments
        group = given.get("group")
        if dist.get_rank(group) < 0:
            return function(*args, **kwargs)
        if "scatter_object_output_list" in given and not given.get("scatter_object_input_list"):
            given["scatter_object_input_list"] = given["scatter_object_output_list"][:1] * dist.get_world_size(group)
        return function(**given | {"src": None, "group_src": dist.get_rank(group)})

    return send
