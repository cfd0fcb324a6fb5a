"""The process group of a world of one: what a collective does when nobody else takes part."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from peaksight.virtual_gpu.torch_private import finished_work, world

Tensors = Sequence[torch.Tensor]

_ProcessGroup: Any = dist.ProcessGroup  # its stubs tell of overloads that the C++ names for these methods lack


class OneRank(_ProcessGroup):
    """Rank 0 of one: reductions and broadcasts leave their tensors as they are, the others copy.

    Limitations:
        There is nobody to send to or receive from: `send` and `recv` raise.
    """

    def __init__(self) -> None:
        """A group of one."""
        super().__init__(0, 1)

    def getBackendName(self) -> str:
        """For messages of torch."""
        return "one rank"

    @property
    def group_name(self) -> str:
        """What torch.distributed knows it by."""
        return world().pg_names[self]

    def broadcast(self, tensors: Tensors, options: Any = None) -> Any:
        """From rank 0 to itself."""
        return finished_work(tensors)

    def allreduce(self, tensors: Tensors, options: Any = None) -> Any:
        """The sum, mean or maximum of one."""
        return finished_work(tensors)

    reduce = allreduce_coalesced = allreduce

    def barrier(self, options: Any = None, opts: Any = None) -> Any:
        """Everybody is here."""
        return finished_work([])

    monitored_barrier = barrier

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any = None) -> Any:
        """Into a list, by way of one tensor, as `ProcessGroupNCCL::allgather`."""
        for (output,), tensor in zip(outputs, inputs, strict=True):
            _copy([output], [_flattened(tensor)])
        return finished_work(outputs)

    allgather_coalesced = allgather

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, options: Any = None) -> Any:
        """Into one tensor; of one rank as many elements come out as went in, and so in all that follow."""
        return self._exchange(output, tensor)

    _allgather_base = reduce_scatter_single = _reduce_scatter_base = gather_single = all_gather_single

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, options: Any = None) -> Any:
        """Several at once."""
        return self._exchange(outputs, inputs)

    allgather_into_tensor_coalesced = reduce_scatter_single_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = alltoall = all_gather_single_coalesced

    def all_to_all_single(self, output: torch.Tensor, tensor: torch.Tensor, *sizes_and_options: Any) -> Any:
        """The only part goes to the only rank."""
        return self._exchange(output, tensor)

    alltoall_base = all_to_all_single

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any = None) -> Any:
        """From a list, by way of one tensor, as `ProcessGroupNCCL::reduce_scatter`."""
        for output, (tensor,) in zip(outputs, inputs, strict=True):
            _copy([output], [_flattened(tensor)])
        return finished_work(outputs)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, options: Any = None) -> Any:
        """Into a list."""
        return self._exchange([output for (output,) in outputs], inputs)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], options: Any = None) -> Any:
        """From a list."""
        return self._exchange(outputs, [tensor for (tensor,) in inputs])

    def _exchange(self, outputs: Any, inputs: Any) -> Any:
        outputs, inputs = ([t] if isinstance(t, torch.Tensor) else t for t in (outputs, inputs))
        _copy(outputs, inputs)
        return finished_work(outputs)

    def _start_coalescing(self, device: Any) -> None:
        """Nothing waits for the others of its batch."""

    def _end_coalescing(self, device: Any) -> Any:
        return finished_work([])


def _copy(outputs: Iterable[torch.Tensor], inputs: Iterable[torch.Tensor]) -> None:
    for output, tensor in zip(outputs, inputs, strict=True):
        if output is not tensor:
            output.view(-1).copy_(tensor.reshape(-1))


def _flattened(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a list of one tensor in one, which lives as long as the operation."""
    flat = tensor.new_empty((1, *tensor.shape))
    flat[0].copy_(tensor)
    return flat
