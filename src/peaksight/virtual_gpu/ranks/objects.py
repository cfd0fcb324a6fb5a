"""Objects that one rank sends to others: the ranks that are simulated later receive what the first one sent."""

import inspect
import pickle
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.ranks import process_group
from peaksight.virtual_gpu.ranks.collectives import in_ranges

# Pickled lists, by the ranks of the group and the number of the call in it.
Told = dict[tuple[str, int], bytes]


class Objects:
    """Keeps in `told` what this rank sends, and hands out what is there to receive."""

    def __init__(self, told: Told) -> None:
        """`told` is empty in the run of the first rank."""
        self._told = told
        self._num_calls: Counter[str] = Counter()

    def install(self, patches: Patches) -> None:
        """Answer `broadcast_object_list` and `scatter_object_list` in groups of several, until `patches` is left."""
        for name, answer in (("broadcast_object_list", self._broadcast), ("scatter_object_list", self._scatter)):
            function = _among_several(getattr(dist, name), answer)
            for owner in (dist, dist.distributed_c10d):
                patches.set(owner, name, function)

    def _broadcast(self, call: dict[str, Any], group: Any) -> None:
        sent = self._exchanged("broadcast_object_list", call["object_list"], call, group)
        call["object_list"][:] = sent if sent is not None else call["object_list"]

    def _scatter(self, call: dict[str, Any], group: Any) -> None:
        sent = self._exchanged("scatter_object_list", call.get("scatter_object_input_list"), call, group)
        if sent is not None:
            call["scatter_object_output_list"][0] = sent[group.rank()]

    def _exchanged(self, kind: str, objects: Any, call: dict[str, Any], group: Any) -> Any:
        """What is sent in this call, None where nobody knows."""
        ranks = in_ranges(group.ranks)
        key = ranks, self._num_calls[ranks]
        self._num_calls[ranks] += 1
        if group.rank() == _source(call, group):
            self._told[key] = pickle.dumps(objects)
        process_group.called(group, kind, ())
        pickled = self._told.get(key)
        if pickled is None:
            return None
        _pass_through_card(group, len(pickled))
        return pickle.loads(pickled)


def _among_several(alone: Callable[..., Any], answer: Callable[[dict[str, Any], Any], None]) -> Callable[..., Any]:
    signature = inspect.signature(alone)

    @wraps(alone)
    def exchange(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs).arguments
        group = call.get("group") or dist.group.WORLD
        if isinstance(group, process_group.SameRanks) and group.size() > 1:
            return answer(call, group)
        return alone(*args, **kwargs)

    return exchange


def _source(call: dict[str, Any], group: Any) -> int:
    """The rank in the group that sends, by default the first rank of all."""
    if call.get("group_src") is not None:
        return call["group_src"]
    return dist.get_group_rank(group, call.get("src") or 0)


def _pass_through_card(group: Any, num_bytes: int) -> None:
    """NCCL takes pickled objects from the card, as bytes."""
    if "nccl" in dist.get_backend(group):
        torch.empty(num_bytes, dtype=torch.uint8, device="cuda")
