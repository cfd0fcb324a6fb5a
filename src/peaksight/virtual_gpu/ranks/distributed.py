"""`torch.distributed` on the virtual GPU: one rank of a world in which all others hold what it holds; no sockets."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
import torch.cuda.nccl
import torch.distributed as dist
import torch.multiprocessing

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.ranks import checkpoints, consolidated, ddp, refused, sharding
from peaksight.virtual_gpu.ranks.communicators import Communicators
from peaksight.virtual_gpu.ranks.world import World
from peaksight.virtual_gpu.torch_private import autocast_for_all
from peaksight.virtual_gpu.torch_private import world as groups

Context = Callable[[], AbstractContextManager[None]]
Note = Callable[..., None]
Called = Callable[[Any, str, Any], None]

_BACKEND = "same_ranks"
_NO_LAUNCHER = (
    "Nothing says as how many ranks this script runs: start it with --ranks N, "
    "or as on the cluster: peaksight run torchrun --nproc-per-node N ..."
)
_NCCL = (2, 28, 9)  # of torch 2.11 to 2.14


def install(patches: Patches, devices: Devices, world: World, note: Note, called: Called, unrecorded: Context) -> None:
    """Make every process group one of `world`, of which one rank is there, until `patches` is left.

    `note` is `Approximations.note`, `called` is told of every collective, and under `unrecorded()` operators take no
    memory.
    """
    _start_one_process(patches, world)
    if dist.is_available():
        _make_groups(patches, world, note, called)
        _keep_stores_in_process(patches)
        _name_launchers(patches)
        sharding.install(patches, unrecorded)
        consolidated.install(patches)
        checkpoints.install(patches, note)
        refused.install(patches, world)
        ddp.install(patches, devices, note)
        patches.callback(_leave_groups)
        patches.set(sys, "excepthook", sys.excepthook)  # a group puts its rank in front of tracebacks


def exchange_messages(patches: Patches, sent: dict[tuple[str, int], bytes], note: Note, unrecorded: Context) -> None:
    """Let this rank receive what is in `sent`, and keep there what it sends, until `patches` is left."""
    if dist.is_available():
        from peaksight.virtual_gpu.ranks import joins, pipelining
        from peaksight.virtual_gpu.ranks.messages import Messages

        joins.install(patches)
        pipelining.install(patches, sent, note)
        Messages(sent, unrecorded).install(patches)


def _leave_groups() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _make_groups(patches: Patches, world: World, note: Note, called: Called) -> None:
    """Whatever backend is asked for: the group says that it has it."""
    from torch.distributed import distributed_c10d as c10d

    from peaksight.virtual_gpu.ranks import process_group

    communicators = Communicators(note, called)
    cast_dtensors = cache(lambda: patches.enter_context(autocast_for_all()))
    patches.set(process_group, "called", communicators.called)
    if not hasattr(dist.Backend, _BACKEND.upper()):
        dist.Backend.register_backend(_BACKEND, _new_group, devices=["cpu", "cuda"])

    def make(size: int, rank: int, ranks: list[int], backend: Any, *args: Any, **kwargs: Any) -> Any:
        if not ranks:
            world.met(rank, size)
            if size > 1:
                cast_dtensors()
                note("same-ranks", str(world.size))
        group, store = real(size, rank, ranks, dist.Backend(_BACKEND), *args, **kwargs | {"device_id": None})
        if isinstance(group, process_group.SameRanks):
            groups().pg_map[group] = (backend, store)
            if _is_nccl(backend):
                communicators.made(sum(_is_nccl(kind) for kind, _ in groups().pg_map.values()))
        return group, store

    real = patches.set(c10d, "_new_process_group_helper", make)
    patches.set(c10d, "_store_based_barrier", lambda *args, **kwargs: None)
    patches.set(c10d, "default_pg_nccl_timeout", c10d.default_pg_timeout)
    patches.set(torch.cuda.nccl, "version", lambda: _NCCL)
    for owner in (dist, c10d):
        patches.set(owner, "is_nccl_available", lambda: True)


def _is_nccl(backend: Any) -> bool:
    return "nccl" in str(backend) or backend == dist.Backend.UNDEFINED


def _new_group(store: Any, rank: int, size: int, timeout: Any) -> Any:
    from peaksight.virtual_gpu.ranks.process_group import SameRanks

    return SameRanks(rank, size)


def _keep_stores_in_process(patches: Patches) -> None:
    """What ranks tell each other goes through a store on a socket or in a file: of one rank, through a dictionary."""
    modules = [sys.modules[f"torch.distributed.{name}"] for name in ("rendezvous", "distributed_c10d")]

    def make_store(*args: Any, **kwargs: Any) -> dist.Store:
        return dist.HashStore()

    patches.set(modules[0], "_create_c10d_store", make_store)
    for owner in (dist, *modules):
        for name in ("TCPStore", "FileStore"):
            if hasattr(owner, name):
                patches.set(owner, name, make_store)


def _name_launchers(patches: Patches) -> None:
    """A script that torchrun starts fails without it: the traceback says how it is started here."""
    rendezvous = sys.modules["torch.distributed.rendezvous"]

    def failed(message: str) -> ValueError:
        error: ValueError = fail(message)
        if "environment variable" in message:
            error.add_note(_NO_LAUNCHER)
        return error

    fail: Any = getattr(rendezvous, "_rendezvous_error", None)
    if fail is not None:
        patches.set(rendezvous, "_rendezvous_error", failed)


def _start_one_process(patches: Patches, world: World) -> None:
    """`torch.multiprocessing.spawn(train, nprocs=n)`: the process of the simulated rank is this one."""

    def spawn(
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        nprocs: int = 1,
        join: bool = True,
        *more: Any,
        **kwargs: Any,
    ) -> Any:
        number = world.started(nprocs)
        if number is not None:
            fn(number, *args)
        return None if join else _Finished()

    for name in ("spawn", "start_processes"):
        patches.set(torch.multiprocessing, name, spawn)


class _Finished:
    """What `spawn(..., join=False)` returns: processes that have ended."""

    processes = ()

    def join(self, *args: Any, **kwargs: Any) -> bool:
        """Whether all have ended."""
        return True
