"""The seconds of one operator on a card: a roofline over what its kernels compute and move."""

from dataclasses import dataclass
from typing import Any

import torch

from peaksight.gpus import Card
from peaksight.virtual_gpu.timing.efficiencies import Kind, efficiencies, peak_flop_per_second
from peaksight.virtual_gpu.timing.work import Work, argument_of, name_of, tensors_in, work_of

# What the memory of a matrix has to be a multiple of, from row to row, for the fast kernels of cuBLAS.
_ALIGNMENT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Cost:
    """One operator: its work, the seconds of its kernels, and what its host takes beside the cost of every operator.

    `tf32_seconds` are those where the script lets float32 be multiplied so, None where that makes no difference.
    """

    work: Work
    seconds: float
    tf32_seconds: float | None
    host_seconds: float
    kind: str


def cost_of(func: Any, args: tuple, kwargs: dict, out: Any, card: Card) -> Cost:
    """What `func(*args, **kwargs)`, which returned `out`, costs on `card`."""
    work = work_of(func, args, kwargs, out)
    kind = kind_of(func, args, kwargs, out)
    arithmetic = arithmetic_of(args, out)
    seconds = seconds_of(work, kind, arithmetic, card)
    with_tf32 = seconds_of(work, kind, "tf32", card) if arithmetic == "fp32" and work.flops else None
    host = kind.host + kind.per_tensor * work.num_tensors
    return Cost(work, seconds, with_tf32, host, kind.name)


def seconds_of(work: Work, kind: Kind, arithmetic: str, card: Card) -> float:
    """What the card takes for `work`: what a kernel takes at least, and the longer of computing and moving."""
    reached = kind.bandwidth_in_l2 if work.bytes <= card.l2_bytes else kind.bandwidth
    moving = work.bytes / (reached * card.bandwidth_bytes_per_second)
    flops = work.flops / 2 if work.skips_half else work.flops
    computing = flops / (getattr(kind, arithmetic) * peak_flop_per_second(card, arithmetic))
    return work.kernels * kind.seconds + max(computing, moving)


def arithmetic_of(args: tuple, out: Any) -> str:
    """What the kernels compute in: the field of `Kind` for the first floating-point tensor."""
    dtype = next((tensor.dtype for tensor in tensors_in((*args, out)) if tensor.dtype.is_floating_point), torch.float32)
    return {1: "fp8", 2: "half", 8: "double"}.get(dtype.itemsize, "fp32")


def kind_of(func: Any, args: tuple, kwargs: dict, out: Any) -> Kind:
    """The kind of an operator, also by how its arguments lie in memory."""
    table = efficiencies()
    kind = table.kind_of(name_of(func))
    if kind.name == "matmul" and not all(map(_is_aligned, tensors_in((*args, out)))):
        return table.kinds["matmul_unaligned"]
    if kind.name.startswith("convolution") and argument_of(func, args, kwargs, "groups", 1) > 1:
        return table.kinds["grouped_convolution"]
    return kind


def _is_aligned(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2:
        return True
    return max(tensor.stride()[-2:]) * tensor.itemsize % _ALIGNMENT_BYTES == 0
