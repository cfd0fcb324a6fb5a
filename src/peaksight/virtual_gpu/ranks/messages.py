"""Objects and small tensors that one rank sends: those that are simulated later receive what the first one sent."""

import inspect
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

import torch
import torch.distributed as dist

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.ranks import process_group
from peaksight.virtual_gpu.ranks.collectives import in_ranges, rooted
from peaksight.virtual_gpu.tensors.followed import MAX_FLOAT_NUMEL
from peaksight.virtual_gpu.tensors.known import known_value

Sent = dict[tuple[str, int], bytes]
Context = Callable[[], AbstractContextManager[None]]
# The dtype, the shape and the elements of a tensor.
Values = tuple[torch.dtype, tuple[int, ...], list[Any]]


class Messages:
    """Keeps what this rank sends, and hands out what is there to receive."""

    def __init__(self, sent: Sent, unrecorded: Context) -> None:
        """`sent` is empty in the run of the first rank; under `unrecorded()` values reach the card unseen."""
        self._sent, self._unrecorded = sent, unrecorded
        self._num_calls: Counter[str] = Counter()

    def install(self, patches: Patches) -> None:
        """Answer in groups of several until `patches` is left."""
        for name, answer in (("broadcast_object_list", self._broadcast), ("scatter_object_list", self._scatter)):
            function = _among_several(getattr(dist, name), answer)
            for owner in (dist, dist.distributed_c10d):
                patches.set(owner, name, function)
        self._broadcast_unknown = patches.set(process_group.SameRanks, "broadcast", _as_method(self._broadcast_tensors))

    def _broadcast_tensors(self, group: Any, tensors: Sequence[torch.Tensor], options: Any = None) -> Any:
        if group.size() > 1 and options is not None:
            is_mine = group.rank() == options.rootRank
            sent = self._passed(f"tensors {in_ranges(group.ranks)}", lambda: [*map(_values_of, tensors)], is_mine)
            if sent is not None and not is_mine:
                self._fill(tensors, pickle.loads(sent))
        return self._broadcast_unknown(group, tensors, options)

    def _fill(self, tensors: Sequence[torch.Tensor], sent: Sequence[Values | None]) -> None:
        with self._unrecorded(), torch.no_grad():
            for tensor, values in zip(tensors, sent, strict=False):
                if values is not None and values[1] == tuple(tensor.shape):
                    tensor.copy_(torch.tensor(values[2], dtype=values[0]))

    def _broadcast(self, call: dict[str, Any], group: Any) -> None:
        sent = self._exchanged("broadcast_object_list", call["object_list"], call, group)
        call["object_list"][:] = sent if sent is not None else call["object_list"]

    def _scatter(self, call: dict[str, Any], group: Any) -> None:
        sent = self._exchanged("scatter_object_list", call.get("scatter_object_input_list"), call, group)
        if sent is not None:
            call["scatter_object_output_list"][0] = sent[group.rank()]

    def _exchanged(self, kind: str, objects: Any, call: dict[str, Any], group: Any) -> Any:
        """What is sent in this call, None where nobody knows."""
        source = _source(call, group)
        pickled = self._passed(in_ranges(group.ranks), lambda: objects, group.rank() == source)
        process_group.called(group, rooted(kind, group.in_world(source)), ())
        if pickled is None:
            return None
        _pass_through_card(group, len(pickled))
        return pickle.loads(pickled)

    def _passed(self, what: str, mine: Callable[[], Any], is_mine: bool) -> bytes | None:
        """What is sent for the how-many-eth time, by this rank or by one before it."""
        key = what, self._num_calls[what]
        self._num_calls[what] += 1
        if is_mine:
            self._sent[key] = pickle.dumps(mine())
        return self._sent.get(key)


def _as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda group, *args, **kwargs: function(group, *args, **kwargs)


def _values_of(tensor: torch.Tensor) -> Values | None:
    """Those of a small tensor, where they are known: a length, a seed, a flag."""
    known = known_value(tensor) if tensor.numel() <= MAX_FLOAT_NUMEL else None
    return None if known is None else (tensor.dtype, tuple(tensor.shape), known.tolist())


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
