"""Parameters, gradients and state of the optimizer shared by the ranks of a job: FSDP2 on a script for one card."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from peaksight.errors import UnsupportedError
from peaksight.overlays.modules import find_modules
from peaksight.overlays.parts_of_batches import evenly, when_read
from peaksight.overlays.patches import Patches

_PARTS = "_own_parts_by_plan"


def apply(patches: Patches, note: Callable[[], None], modules: Sequence[str], loaders: Collection[int]) -> None:
    """Let each rank hold its share of the modules that `modules` name, and read its part of each batch.

    The modules are sharded in their order, before the model that holds them is first called, and optimizers get the
    shards of what they were given. Those DataLoaders which are the first, second, ... (0, 1, ...) that are read give
    this rank's part of their batches. Where the script has no group of all ranks it is made, for `LOCAL_RANK`'s card.

    Raises:
        UnsupportedError: an optimizer has stepped before the model was called; raised in the script's call.
    """
    sharding = _Sharding(tuple(modules), note)
    add: Any = Optimizer.add_param_group
    call: Any = nn.Module.__call__

    def add_param_group(optimizer: Optimizer, param_group: dict[str, Any]) -> None:
        sharding.optimizers.add(optimizer)
        add(optimizer, param_group)

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        sharding.look_at(module)
        return call(module, *args, **kwargs)

    patches.set(Optimizer, "add_param_group", add_param_group)
    patches.set(nn.Module, "__call__", called)
    _give_parts(patches, loaders)


class _Sharding:
    """Shards what is named of each model, once."""

    def __init__(self, paths: tuple[str, ...], note: Callable[[], None]) -> None:
        self.optimizers: WeakSet[Optimizer] = WeakSet()
        self._paths, self._note = paths, note
        self._seen: WeakSet[nn.Module] = WeakSet()

    def look_at(self, module: nn.Module) -> None:
        """`module` is about to be called."""
        if module not in self._seen:
            self._seen.update(module.modules())
            found = list(find_modules(module, self._paths))
            if found:
                self._shard(module, found)

    def _shard(self, root: nn.Module, found: Sequence[nn.Module]) -> None:
        before = dict(root.named_parameters())
        mesh = _mesh_on(next(iter(before.values())).device.type)
        for each in found:
            fully_shard(each, mesh=mesh)
        self._replace(before, dict(root.named_parameters()))
        self._note()

    def _replace(self, before: dict[str, nn.Parameter], after: dict[str, nn.Parameter]) -> None:
        """Parameters that were sharded are other objects: optimizers get them in place of the old ones."""
        shards = {id(old): after[name] for name, old in before.items()}
        for optimizer in self.optimizers:
            if optimizer.state and any(id(old) in shards for old in optimizer.state):
                raise UnsupportedError(
                    "Can't shard the model: an optimizer has stepped before it was called. Leave sharding out of the "
                    "plan, and call `fully_shard` in the script.",
                    slug="plan-sharding",
                )
            for group in optimizer.param_groups:
                group["params"] = [shards.get(id(each), each) for each in group["params"]]


def _mesh_on(device_type: str) -> DeviceMesh:
    """All ranks in a row."""
    if not dist.is_initialized():
        if device_type == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group()
    return init_device_mesh(device_type, (dist.get_world_size(),))


class _OwnParts:
    """Of each batch of a sampler of batches the part that this rank reads; as long as the sampler.

    Where a batch has fewer samples than there are ranks, several read the same ones, as DistributedSampler has it.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __iter__(self) -> Iterator[list[Any]]:
        """The indices of the samples of each part."""
        rank, size = (int(os.environ.get(name, default)) for name, default in (("RANK", "0"), ("WORLD_SIZE", "1")))
        for batch in self._sampler:
            parts = evenly(list(batch), size)
            yield parts[rank % len(parts)]

    def __len__(self) -> int:
        """How many batches there are."""
        return len(self._sampler)


def _give_parts(patches: Patches, loaders: Collection[int]) -> None:
    whole = vars(DataLoader)["_index_sampler"]

    def take_own(loader: DataLoader[Any]) -> None:
        vars(loader)[_PARTS] = _OwnParts(loader.batch_sampler)

    def sampler_of(loader: DataLoader[Any]) -> Any:
        return vars(loader).get(_PARTS) or whole.__get__(loader)

    when_read(patches, loaders, take_own)
    patches.set(DataLoader, "_index_sampler", property(sampler_of))
