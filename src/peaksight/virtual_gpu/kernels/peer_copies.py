"""Copies between two cards that cannot read each other's memory: what they take beside their result.

Mirrors `copy_requires_temporaries` and `copy_kernel_cuda` of ATen/native/cuda/Copy.cu. Contiguous data of one type is
sent as it is; everything else is brought into one piece first, on the card that it comes from.
"""

from collections.abc import Sequence
from typing import Any

import torch

from peaksight.records import Role
from peaksight.virtual_gpu.kernels.temporaries import KernelCall
from peaksight.virtual_gpu.memory.ledger import Ledger

aten = torch.ops.aten


def pass_through(call: KernelCall, ledgers: Sequence[Ledger]) -> None:
    """Take what the copy `call` takes on both cards, and give it back."""
    target, source = _ends(call)
    if target is None or source is None or target.fake_device == source.fake_device or _is_sent(target, source):
        return
    there, here = (ledgers[tensor.fake_device.index] for tensor in (target, source))
    num_bytes, op = target.numel() * target.itemsize, call.func.name()
    arriving = None if target.is_contiguous() else there.allocate(num_bytes, op, Role.WORKSPACE)
    cast = None
    if source.dtype != target.dtype:
        cast = here.allocate(source.numel() * target.itemsize, op, Role.WORKSPACE)
    if not source.expand(target.shape).is_contiguous():
        whole = here.allocate(num_bytes, op, Role.WORKSPACE)
        if cast is not None:
            here.free(cast)
        cast = whole
    if cast is not None:
        here.free(cast)
    if arriving is not None:
        there.free(arriving)


def _ends(call: KernelCall) -> tuple[Any, Any]:
    """Where a copy goes and where it comes from, where both are on a card."""
    if call.func is aten._to_copy.default:
        ends = call.out, call.args[0]
    elif call.func is aten.copy_.default:
        ends = call.args[0], call.args[1]
    else:
        return None, None
    return ends if all(_is_on_card(tensor) for tensor in ends) else (None, None)


def _is_on_card(tensor: Any) -> bool:
    return getattr(tensor, "fake_device", None) is not None and tensor.fake_device.type == "cuda"


def _is_sent(target: Any, source: Any) -> bool:
    """Whether both are one piece in the same order, and of one type."""
    if target.dtype != source.dtype or not aten.is_non_overlapping_and_dense.default(target):
        return False
    strides = zip(target.shape, target.stride(), source.expand(target.shape).stride(), strict=True)
    return all(size == 1 or ours == theirs for size, ours, theirs in strides)
