"""DistributedDataParallel on the virtual GPU: its own C++ runs, and what that or a hook allocates is for communication.

Note [Late release]
The Reducer waits for the future of an all-reduce, never for its work. `ProcessGroupNCCL` then keeps the tensors of the
work (`stashed_for_allocator_safety_`) until its watchdog, which looks every 0.1 s, has seen the end of it. What DDP
drops before, such as its first buckets when it rebuilds them or the casts of a compressing hook, is freed that
much later.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import distributed as data_parallel

from peaksight.overlays.patches import Patches
from peaksight.records import Role
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.torch_private import FakeTensor

Note = Callable[..., None]


def install(patches: Patches, devices: Devices, note: Note) -> None:
    """Follow what the Reducer does until `patches` is left.

    That all ranks have the same parameters goes without saying, and is not verified with a few bytes on the card.
    """
    reductions = _Reductions(devices, note)
    for owner, name in ((dist.Reducer, "__init__"), (dist.Reducer, "_rebuild_buckets"), (dist, "_broadcast_coalesced")):
        patches.set(owner, name, reductions.marking(getattr(owner, name)))
    patches.set(dist, "_register_comm_hook", reductions.with_hook_marked(dist._register_comm_hook))
    patches.set(data_parallel, "_verify_param_shape_across_processes", lambda *args: None)
    patches.set(dist.Logger, "set_runtime_stats_and_log", lambda logger: None)  # it logs that nothing was timed
    reductions.watch_group(patches)


class _Reductions:
    """Which blocks are buckets, or what hooks make of them."""

    def __init__(self, devices: Devices, note: Note) -> None:
        self._devices, self._note = devices, note
        self._in_hook = False

    def marking(self, function: Callable) -> Callable:
        """What is born in a call of `function` is for communication."""

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with _births(self._devices) as births:
                result = function(*args, **kwargs)
            for birth in births:
                birth.role = Role.COMMUNICATION
            return result

        return marked

    def with_hook_marked(self, register: Callable) -> Callable:
        """`dist._register_comm_hook`: a hook reduces what it makes as the Reducer does."""
        return lambda reducer, state, hook: register(reducer, state, self._in_hook_of(hook))

    def _in_hook_of(self, hook: Callable) -> Callable:
        marked = self.marking(hook)

        @functools.wraps(hook)
        def call(*args: Any) -> Any:
            self._in_hook = True
            try:
                return marked(*args)
            finally:
                self._in_hook = False

        return call

    def watch_group(self, patches: Patches) -> None:
        """See Note [Late release]."""
        from peaksight.virtual_gpu.ranks.process_group import SameRanks

        def reduce(group: Any, tensors: Any, options: Any = None) -> Any:
            for tensor in tensors:
                self._stash(tensor)
            return allreduce(group, tensors, options)

        allreduce = patches.set(SameRanks, "allreduce", reduce)

    def _stash(self, tensor: Any) -> None:
        birth = self._devices.birth_of(tensor) if isinstance(tensor, FakeTensor) else None
        if birth is not None and (self._in_hook or birth.role is Role.COMMUNICATION):
            birth.late_free = True
            self._note("bucket-release")


@contextmanager
def _births(devices: Devices) -> Iterator[list[Birth]]:
    """What is born inside, once it is left."""
    births: list[Birth] = []
    before = [len(ledger.births) for ledger in devices.ledgers]
    yield births
    for ledger, first in zip(devices.ledgers, before, strict=True):
        births += ledger.births[first:]
