"""DistributedDataParallel on the virtual GPU: its own C++ runs, and what that or a hook allocates is for communication.

Note [Callbacks have streams of their own]
What a hook does `then`, `ivalue::Future` runs on the next of the 32 streams of CUDA's pool. With a matrix product each
of them gets a workspace of cuBLAS, which it keeps: PowerSGD comes to 1 GiB on Hopper.

Note [Late release]
The Reducer waits for the future of an all-reduce, never for its work. `ProcessGroupNCCL` then keeps the tensors of the
work (`stashed_for_allocator_safety_`) until its watchdog, which looks every 0.1 s, has seen the end of it. What a
hook made is there to the end of its step, as the host is ahead of the card. The first buckets are dropped when the host
has waited for the card, before the second forward: whether they are freed then is a matter of milliseconds.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import distributed as data_parallel

from peaksight.overlays.patches import Patches
from peaksight.records import Role
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.torch_private import FakeTensor

Note = Callable[..., None]

POOL_SIZE = 32  # kStreamsPerPool in c10/cuda/CUDAStream.cpp


def install(patches: Patches, devices: Devices, note: Note) -> None:
    """Follow what the Reducer does until `patches` is left.

    That all ranks have the same parameters goes without saying, and is not verified with a few bytes on the card.
    """
    reductions = _Reductions(devices, note)
    patches.set(dist, "_broadcast_coalesced", reductions.marking(dist._broadcast_coalesced))
    for name in ("__init__", "_rebuild_buckets"):
        patches.set(dist.Reducer, name, reductions.making_buckets(getattr(dist.Reducer, name)))
    patches.set(dist, "_register_comm_hook", reductions.with_hook_marked(dist._register_comm_hook))
    patches.set(data_parallel, "_verify_param_shape_across_processes", lambda *args: None)
    patches.set(dist.Logger, "set_runtime_stats_and_log", lambda logger: None)  # it logs that nothing was timed
    patches.set(torch._C.Future, "then", reductions.on_streams(torch._C.Future.then))
    reductions.watch_group(patches)


class _Reductions:
    """Which blocks are buckets, or what hooks make of them."""

    def __init__(self, devices: Devices, note: Note) -> None:
        self._devices, self._note = devices, note
        self._in_hook = False
        self._streams: Iterator[Any] | None = None
        self._stashed: list[Any] = []

    def marking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is born in a call of `function` is for communication."""

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with _births(self._devices) as births:
                result = function(*args, **kwargs)
            for birth in births:
                if birth.role is not Role.WORKSPACE:
                    birth.role = Role.COMMUNICATION
            return result

        return marked

    def with_hook_marked(self, register: Callable[..., Any]) -> Callable[..., Any]:
        """`dist._register_comm_hook`: a hook reduces what it makes as the Reducer does."""
        return lambda reducer, state, hook: register(reducer, state, self._in_hook_of(hook))

    def _in_hook_of(self, hook: Callable[..., Any]) -> Callable[..., Any]:
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

        def wait(group: Any, *args: Any, **kwargs: Any) -> Any:
            self._stashed.clear()
            return barrier(group, *args, **kwargs)

        allreduce = patches.set(SameRanks, "allreduce", reduce)
        barrier = patches.set(SameRanks, "barrier", wait)

    def _stash(self, tensor: Any) -> None:
        birth = self._devices.birth_of(tensor) if isinstance(tensor, FakeTensor) else None
        if birth is None:
            return
        if birth.role is Role.COMMUNICATION:
            birth.late_free = True
            self._note("bucket-release")
        elif self._in_hook:
            self._stashed.append(tensor)

    def making_buckets(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """In the Reducer's constructor, or before each forward: by then the watchdog has seen what hooks reduced."""
        marked = self.marking(function)

        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Any:
            self._stashed.clear()
            return marked(*args, **kwargs)

        return make

    def on_streams(self, then: Callable[..., Any]) -> Callable[..., Any]:
        """See Note [Callbacks have streams of their own]."""

        @functools.wraps(then)
        def call(future: Any, callback: Callable[..., Any]) -> Any:
            return then(future, self._on_stream(callback) if self._in_hook else callback)

        return call

    def _on_stream(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        self._streams = self._streams or cycle([torch.cuda.Stream() for _ in range(POOL_SIZE)])
        stream = next(self._streams)

        @functools.wraps(callback)
        def call(future: Any) -> Any:
            with torch.cuda.stream(stream):
                return callback(future)

        return call


@contextmanager
def _births(devices: Devices) -> Iterator[list[Birth]]:
    """What is born inside, once it is left."""
    births: list[Birth] = []
    before = [len(ledger.births) for ledger in devices.ledgers]
    yield births
    for ledger, first in zip(devices.ledgers, before, strict=True):
        births += ledger.births[first:]
