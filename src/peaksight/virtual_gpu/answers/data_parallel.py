"""Copies between the cards of one process: the C++ half of `nn.DataParallel` and `torch.nn.parallel.comm`.

Mirrors torch/csrc/cuda/comm.cpp and torch/csrc/utils/tensor_flatten.cpp. NCCL runs what torch has it run; what its
communicators take is not known.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
import torch.cuda.nccl
import torch.nn.parallel
from torch._utils import _unflatten_dense_tensors

from peaksight.overlays.patches import Patches
from peaksight.records import Role
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.devices import for_cpp
from peaksight.virtual_gpu.tensors.known import forget

_HOST = -1
Tensors = Sequence[torch.Tensor]


def install(patches: Patches, devices: Devices, note: Callable[[str], None]) -> None:
    """Answer until `patches` is left; `note(slug)` is told where NCCL would make a communicator."""
    copies = _Copies(devices, note)
    parallel = (sys.modules[f"torch.nn.parallel.{name}"] for name in ("parallel_apply", "_functions"))
    replicas, functions = parallel
    for owner, answers in (
        (torch._C, copies.answers()),
        (torch.cuda.nccl, _nccl(note)),
        # Replicas run one after the other: each has a card of its own, so that no allocator sees a difference.
        (replicas, {"threading": SimpleNamespace(Thread=_RunAtOnce, Lock=threading.Lock)}),
        (functions, {"_streams": None}),
    ):
        for name, answer in answers.items():
            patches.set(owner, name, answer)


class _RunAtOnce:
    """Stands in for threading.Thread."""

    def __init__(self, *, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._run = lambda: target(*args)

    def start(self) -> None:
        self._run()

    def join(self) -> None:
        """It is done."""


class _Copies:
    """The functions of comm.cpp, by their names in `torch._C`."""

    def __init__(self, devices: Devices, note: Callable[[str], None]) -> None:
        self._devices = devices
        self._note = note

    def answers(self) -> dict[str, Callable[..., Any]]:
        return {
            "_broadcast": self.broadcast,
            "_broadcast_coalesced": self.broadcast_coalesced,
            "_broadcast_out": self.broadcast_out,
            "_scatter": scatter,
            "_scatter_out": scatter_out,
            "_gather": gather,
            "_gather_out": gather_out,
        }

    def broadcast(self, tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
        """`tensor` itself on its own card, and a copy of it on the others."""
        mine = tensor.get_device()
        copies = {device: torch.empty_like(tensor, device=for_cpp(device)) for device in devices if device != mine}
        self.broadcast_out(tensor, list(copies.values()))
        return [copies.get(device, tensor) for device in devices]

    def broadcast_out(self, tensor: torch.Tensor, copies: list[torch.Tensor]) -> list[torch.Tensor]:
        """By NCCL."""
        if copies:
            self._note("communicator")
        for copied in copies:
            copied.copy_(tensor, non_blocking=True)
        return copies

    def broadcast_coalesced(
        self, tensors: Tensors, devices: Sequence[int], buffer_size: int
    ) -> list[list[torch.Tensor]]:
        """Copies of `tensors`, those on `devices[0]`, in buffers of about `buffer_size` bytes that they share."""
        outputs: list[list[torch.Tensor]] = [list(tensors), *([] for _ in devices[1:])]
        for chunk in _chunks(tensors, buffer_size):
            flat = torch.cat(list(map(_flat, chunk))) if len(chunk) > 1 else _flat(chunk[0])
            for output, copied in zip(outputs[1:], self.broadcast(flat, devices)[1:], strict=True):
                self._is_for(copied, chunk[0])
                output += [part.detach() for part in _unflatten_dense_tensors(copied, chunk)]
            del flat, copied
        return [outputs[0], *(_as_ordered(output, tensors, buffer_size) for output in outputs[1:])]

    def _is_for(self, copied: torch.Tensor, original: torch.Tensor) -> None:
        """Say that a replica's parameters and buffers are such."""
        source, birth = self._devices.birth_of(original), self._devices.birth_of(copied)
        if source is not None and birth is not None and source.role in (Role.PARAMETER, Role.BUFFER):
            birth.role = source.role


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1)


def _chunks(tensors: Tensors, size_limit: int) -> Iterator[list[torch.Tensor]]:
    """`take_tensors`: of one type each, up to the tensor with which the limit is reached."""
    groups: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        group = groups.setdefault(tensor.dtype, [])
        group.append(tensor)
        if sum(member.nbytes for member in group) >= size_limit:
            yield groups.pop(tensor.dtype)
    yield from groups.values()


def _as_ordered(copies: Tensors, tensors: Tensors, buffer_size: int) -> list[torch.Tensor]:
    """`copies`, which came in chunks, in the order of `tensors`."""
    positions = {id(tensor): position for position, tensor in enumerate(tensors)}
    order = [positions[id(tensor)] for chunk in _chunks(tensors, buffer_size) for tensor in chunk]
    return [copied for _, copied in sorted(zip(order, copies, strict=True), key=lambda pair: pair[0])]


def scatter(
    tensor: torch.Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any
) -> tuple[torch.Tensor, ...]:
    """Parts of `tensor`, each copied to its device, on its stream, unless it is there."""
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split_with_sizes(list(chunk_sizes), dim)
    streams = [*(streams or ()), *[None] * len(devices)]
    return tuple(map(_sent, parts, devices, streams))


def _sent(part: torch.Tensor, device: int, stream: Any) -> torch.Tensor:
    if part.is_cuda and part.get_device() == device:
        return part
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        return part.to(for_cpp(device), non_blocking=True)


def scatter_out(tensor: torch.Tensor, outputs: Tensors, dim: int, streams: Any) -> Tensors:
    """Copy the parts of `tensor` into `outputs`."""
    parts = tensor.split_with_sizes([output.size(dim) for output in outputs], dim)
    for output, part in zip(outputs, parts, strict=True):
        output.copy_(part, non_blocking=True)
    return outputs


def gather(tensors: Tensors, dim: int, destination: int | None) -> torch.Tensor:
    """The parts put together on `destination`, the current device if None, the host if -1."""
    first, size = tensors[0], list(tensors[0].shape)
    size[dim] = sum(tensor.size(dim) for tensor in tensors)
    device = "cpu" if destination == _HOST else for_cpp("cuda" if destination is None else destination)
    return gather_out(tensors, torch.empty(size, dtype=first.dtype, device=device), dim)


def gather_out(tensors: Tensors, output: torch.Tensor, dim: int) -> torch.Tensor:
    """Copy `tensors` into the parts of `output`."""
    parts = output.split_with_sizes([tensor.size(dim) for tensor in tensors], dim)
    for part, tensor in zip(parts, tensors, strict=True):
        part.copy_(tensor, non_blocking=True)
    return output


def _nccl(note: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """torch.cuda.nccl, whose collectives write into tensors that are there."""

    def is_available(tensors: Tensors) -> bool:
        devices = {tensor.get_device() for tensor in tensors if tensor.is_cuda and not tensor.is_sparse}
        return len(devices) == len(tensors) and all(tensor.is_contiguous() for tensor in tensors)

    def write(inputs: Tensors, output: Any = None, *args: Any, **kwargs: Any) -> None:
        note("communicator")
        forget([inputs, output, *kwargs.values()])

    collectives = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter")
    return {"is_available": is_available, **dict.fromkeys(collectives, write)}
