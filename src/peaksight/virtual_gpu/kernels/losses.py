"""Losses, as the steps in which the card computes them: ATen/native/Loss.cpp and ATen/native/cuda/Loss.cu.

A reduced loss is the mean or the sum of one value an element. Where one output serves for both, it is made for the
values and shrinks to a scalar: such a loss holds the bytes of its input for as long as it is alive (H200,
torch 2.11+cu130, 2026-11-28, benchmarks/operators: mse_loss, smooth_l1_loss, soft_margin_loss, binary_cross_entropy).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from peaksight.virtual_gpu.kernels import reductions
from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together
from peaksight.virtual_gpu.tensors.known import known_value

aten = torch.ops.aten

NONE, MEAN = 0, 1
LENGTH_BYTES = 8


def loss_rules() -> dict[Any, Callable[..., Any]]:
    """The steps of each loss that is one operator for autograd; unreduced it is one kernel."""
    return {
        aten.mse_loss.default: _mse_loss,
        aten.smooth_l1_loss.default: _smooth_l1_loss,
        aten.huber_loss.default: _huber_loss,
        aten.binary_cross_entropy.default: _binary_cross_entropy,
    }


def _mse_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = MEAN) -> Any:
    if reduction == NONE:
        return NotImplemented
    out, values = (aten.mse_loss.default(input, target, NONE) for _ in range(2))
    return _reduce_into(out, values, reduction)


def _smooth_l1_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, beta: float = 1.0) -> Any:
    if reduction == NONE:
        return NotImplemented
    out, values = (aten.smooth_l1_loss.default(input, target, NONE, beta) for _ in range(2))
    return _reduce_into(out, values, reduction)


def _huber_loss(input: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, delta: float = 1.0) -> Any:
    if reduction == NONE:
        return NotImplemented
    return _reduced(aten.huber_loss.default(input, target, NONE, delta), reduction)


def _binary_cross_entropy(
    input: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: int = MEAN
) -> Any:
    if reduction == NONE:
        return NotImplemented
    out = aten.binary_cross_entropy.default(input, target, weight, NONE)
    loss = _reduced(out, reduction)
    return out.resize_(()).copy_(loss)


def _reduced(values: torch.Tensor, reduction: int) -> torch.Tensor:
    return values.mean() if reduction == MEAN else values.sum()


def _reduce_into(out: torch.Tensor, values: torch.Tensor, reduction: int) -> torch.Tensor:
    reduce = aten.mean.out if reduction == MEAN else aten.sum.IntList_out
    return reduce(values, [], out=out.resize_(()))


def ctc_loss(
    log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor,
    blank: int = 0, reduction: int = MEAN, zero_infinity: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Lengths are read from their tensors (ATen/native/LossCTC.cpp); tensors of a subclass are not read."""
    rest = blank, reduction, zero_infinity
    inputs, outputs = known_value(input_lengths), known_value(target_lengths)
    if inputs is None or outputs is None:
        return aten.ctc_loss.Tensor.decompose(log_probs, targets, input_lengths, target_lengths, *rest)
    return aten.ctc_loss.IntList(log_probs, targets, inputs.tolist(), outputs.tolist(), *rest)


def _ctc_lengths(call: KernelCall) -> Temporaries:
    """Input lengths, target lengths and where each target begins, on the card: ATen/native/cuda/LossCTC.cu."""
    return together(*3 * [LENGTH_BYTES * call.argument("log_probs").shape[-2]], RESULTS)


def _ctc_gradient(call: KernelCall) -> Temporaries:
    """The same, and the backward variables, which are as many as the forward ones."""
    log_alpha = call.argument("log_alpha")
    return together(*_ctc_lengths(call)[:3], log_alpha.numel() * log_alpha.dtype.itemsize, RESULTS)


def _row_losses(call: KernelCall) -> Temporaries:
    """One loss a row, before they are reduced: ATen/native/cuda/MultiMarginLoss.cu and MultiLabelMarginCriterion.cu."""
    input = call.argument("self")
    if call.argument("reduction") == NONE or input.dim() < 2:
        return ()
    return together(input.shape[0] * input.dtype.itemsize)


def _as(op: Any) -> Rule:
    """What `op` takes, for its form with out=."""
    return lambda call: reductions.TEMPORARIES[op](replace(call, func=op))


TEMPORARIES: dict[object, Rule] = {
    aten.mean.out: _as(aten.mean.dim),
    aten.sum.IntList_out: _as(aten.sum.dim_IntList),
    aten._ctc_loss.default: _ctc_lengths,
    aten._ctc_loss_backward.default: _ctc_gradient,
    aten.multi_margin_loss.default: _row_losses,
    aten.multilabel_margin_loss_forward.default: _row_losses,
}
