"""The process group of one rank of many: what a collective does when all others hold what this rank holds."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist

from peaksight.virtual_gpu.ranks.collectives import reduced_by, rooted
from peaksight.virtual_gpu.torch_private import finished_work, world

Tensors = Sequence[torch.Tensor]


def called(group: "SameRanks", kind: str, tensors: Tensors) -> None:
    """Hears of every collective of a group, by its kind and the tensors that this rank gives; a run has its own."""


_ProcessGroup: Any = dist.ProcessGroup  # its stubs tell of overloads that the C++ names for these methods lack


class SameRanks(_ProcessGroup):
    """Rank `rank` of `size`: what it gathers are copies of what it has, what it reduces is its own.

    Only what is known on the host is summed up: whole numbers, and what is in host memory.

    Limitations:
        What is received, or broadcast by another rank, is what the tensor held before.
    """

    def __init__(self, rank: int, size: int) -> None:
        """A group of `size` ranks."""
        super().__init__(rank, size)
        self._rank, self._size = rank, size

    def getBackendName(self) -> str:
        """For messages of torch."""
        return "same ranks"

    @property
    def group_name(self) -> str:
        """What torch.distributed knows it by."""
        return world().pg_names[self]

    @property
    def _device_types(self) -> list[torch.device]:
        """Tensors of both: objects go by way of the host."""
        return [torch.device("cpu"), torch.device("cuda")]

    def _get_backend(self, device: Any) -> "SameRanks":
        """The same for all devices."""
        return self

    def broadcast(self, tensors: Tensors, options: Any = None) -> Any:
        """From a rank that has the same."""
        return self._finished("broadcast", tensors, tensors, options)

    def allreduce(self, tensors: Tensors, options: Any = None) -> Any:
        """The mean or maximum of the same is the same, and no kernel forms the sum."""
        self._sum_up(tensors, options)
        return self._finished("all_reduce", tensors, tensors, options)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Tensors, options: Any = None) -> Any:
        """As `allreduce`, on one rank."""
        if options is None or options.rootRank == self._rank:
            self._sum_up(tensors, options)
        return self._finished("reduce", tensors, tensors, options)

    def barrier(self, options: Any = None, opts: Any = None) -> Any:
        """Everybody is here."""
        return self._finished("barrier", [], [])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> Any:
        """As it is on the host: with a limit of time."""
        return self.barrier()

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any = None) -> Any:
        """Into a list, by way of one tensor, as `ProcessGroupNCCL::allgather`.

        Of parts of several sizes each rank gives its own: what all have to agree on is then the list.
        """
        for output, tensor in zip(outputs, inputs, strict=True):
            flat = _flattened(output)
            for place in flat:
                if place.numel() == tensor.numel():
                    _copy([place], [tensor])
            _copy(output, flat)
        given = inputs if len(_shapes(outputs)) == 1 else [tensor for output in outputs for tensor in output]
        return self._finished("all_gather", given, outputs)

    allgather_coalesced = allgather

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        """Into one tensor, as often as there are ranks."""
        self._repeat(output, tensor)
        return self._finished("all_gather", [tensor], [output])

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        """Several at once."""
        for output, tensor in zip(outputs, inputs, strict=True):
            self._repeat(output, tensor)
        return self._finished("all_gather", inputs, outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        """The share of this rank."""
        self._share(output, tensor)
        self._sum_up([output], options)
        return self._finished("reduce_scatter", [tensor], [output], options)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        """Several at once."""
        for output, tensor in zip(outputs, inputs, strict=True):
            self._share(output, tensor)
        self._sum_up(outputs, options)
        return self._finished("reduce_scatter", inputs, outputs, options)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any = None) -> Any:
        """From a list, by way of one tensor, as `ProcessGroupNCCL::reduce_scatter`."""
        for output, tensors in zip(outputs, inputs, strict=True):
            flat = _flattened(tensors)
            if flat is not tensors:
                _copy(flat, tensors)
            _copy([output], [flat[self._rank]])
        self._sum_up(outputs, options)
        given = [tensor for tensors in inputs for tensor in tensors]
        return self._finished("reduce_scatter", given, outputs, options)

    def all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor, *sizes_and_options: Any) -> Any:
        """From each rank what this one has for itself; what becomes of uneven parts is not known."""
        if not any(isinstance(sizes, list) and sizes for sizes in sizes_and_options):
            self._repeat(output, self._part(tensor))
        elif self._size == 1:
            _copy([output], [tensor])
        return self._finished("all_to_all", [tensor], [output])

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        """In lists."""
        mine = inputs[self._rank]
        known = [output for output in outputs if output.numel() == mine.numel()]
        _copy(known, [mine] * len(known))
        return self._finished("all_to_all", inputs, outputs)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any = None) -> Any:
        """Into a list, which only one rank has."""
        for output, tensor in zip(outputs, inputs, strict=False):
            _copy(output, [tensor] * len(output))
        return self._finished("gather", inputs, outputs, options)

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        """Into one tensor, which only one rank has."""
        if output.numel() == self._size * tensor.numel():
            self._repeat(output, tensor)
        return self._finished("gather", [tensor], [output], options)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any = None) -> Any:
        """From a list, which only one rank has."""
        for output, tensors in zip(outputs, inputs, strict=False):
            _copy([output], [tensors[self._rank]])
        return self._finished("scatter", outputs, outputs, options)

    def send(self, tensors: Tensors, rank: int, tag: int = 0) -> Any:
        """To another rank."""
        return self._finished(f"send to {rank}", tensors, tensors)

    def recv(self, tensors: Tensors, rank: int, tag: int = 0) -> Any:
        """From another rank."""
        return self._finished(f"recv from {rank}", tensors, tensors)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        """From any other rank."""
        return self._finished("recv", tensors, tensors)

    def _start_coalescing(self, device: Any) -> None:
        """Nothing waits for the others of its batch."""

    def _end_coalescing(self, device: Any) -> Any:
        return finished_work([])

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of its members in the world."""
        return tuple(world().pg_group_ranks[self])

    def in_world(self, member: int) -> int:
        """The number in the world of one of its members.

        Raises:
            ValueError: it has not so many, in the words of `ProcessGroupNCCL`.
        """
        if not 0 <= member < self._size:
            raise ValueError(f"invalid root rank: {member}")
        return self.ranks[member]

    def _finished(self, kind: str, given: Tensors, result: Any, options: Any = None) -> Any:
        operator, root = getattr(options, "reduceOp", None), getattr(options, "rootRank", None)
        reduced = kind if operator is None else reduced_by(kind, operator.op.name)
        called(self, reduced if root is None else rooted(reduced, self.in_world(root)), given)
        return finished_work(result)

    def _repeat(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        if output is not tensor:
            output.view(self._size, -1).copy_(tensor.reshape(1, -1))

    def _share(self, output: torch.Tensor, tensor: torch.Tensor) -> None:
        if output is not tensor:
            _copy([output], [self._part(tensor)])

    def _part(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.reshape(self._size, -1)[self._rank]

    def _sum_up(self, tensors: Tensors, options: Any) -> None:
        if options is None or self._size == 1 or options.reduceOp != dist.ReduceOp.SUM:
            return
        for tensor in tensors:
            if tensor.device.type == "cpu" or not tensor.is_floating_point():
                tensor.mul_(self._size)


def _copy(outputs: Iterable[torch.Tensor], inputs: Iterable[torch.Tensor]) -> None:
    for output, tensor in zip(outputs, inputs, strict=False):
        if output is not tensor:
            output.view(-1).copy_(tensor.reshape(-1))


def _shapes(lists: Sequence[Tensors]) -> set[torch.Size]:
    return {tensor.shape for tensors in lists for tensor in tensors}


def _flattened(tensors: Tensors) -> Any:
    """Room for all of `tensors` in one, which lives as long as the operation; those of several sizes go one by one."""
    if len(_shapes([tensors])) > 1:
        return tensors
    return tensors[0].new_empty((len(tensors), *tensors[0].shape))
