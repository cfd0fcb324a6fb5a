"""Quantisation-aware training: numbers rounded to so many levels in a type of their own, and where they were in range.

Source: ATen/native/quantized/FakeQuantPerTensorAffine.cpp, FakeQuantPerChannelAffine.cpp and
cuda/FusedObsFakeQuant.cu, step by step.

Limitations:
    From the source, not measured.
"""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

Quantised = tuple[torch.Tensor, torch.Tensor]


def steps() -> dict[Any, Callable[..., Any]]:
    """What the card runs in place of each operator."""
    return {
        aten.fake_quantize_per_tensor_affine_cachemask.default: _per_tensor,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _per_tensor,
        aten.fake_quantize_per_channel_affine_cachemask.default: _per_channel,
        aten._fused_moving_avg_obs_fq_helper.default: _observed,
        aten._fake_quantize_learnable_per_tensor_affine.default: _learnable_per_tensor,
        aten._fake_quantize_learnable_per_tensor_affine_backward.default: _gradients_per_tensor,
        aten._fake_quantize_learnable_per_channel_affine.default: _learnable_per_channel,
        aten._fake_quantize_learnable_per_channel_affine_backward.default: _gradients_per_channel,
    }


def _per_tensor(input: torch.Tensor, *_: Any) -> Quantised:
    """As many numbers, and a mask."""
    return torch.empty_like(input), torch.empty_like(input, dtype=torch.bool)


def _per_channel(input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *_: Any) -> Quantised:
    """The same, after a look whether zeros that are integers are in range."""
    if not zero_point.is_floating_point():
        _in_range(zero_point)
    return _per_tensor(input)


def _in_range(zero_point: torch.Tensor) -> None:
    for extremum in torch.aminmax(zero_point):
        extremum.item()


def _observed(
    input: torch.Tensor, observer_on: torch.Tensor, fake_quant_on: torch.Tensor, running_min: torch.Tensor,
    running_max: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, averaging_const: float, quant_min: int,
    quant_max: int, ch_axis: int, per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> Quantised:  # fmt: skip
    """The smallest and the largest number first, of each channel or of a tensor that lies in a row."""
    _lying_in_a_row = input.contiguous()
    if not per_row_fake_quant:
        torch.aminmax(_lying_in_a_row)
        return _per_tensor(input)
    if not running_min.numel():
        for observed in (running_min, running_max, scale, zero_point):
            observed.resize_(input.shape[ch_axis])
    torch.aminmax(input.transpose(0, ch_axis).flatten(1), dim=1)
    if fake_quant_on.item():
        return _per_channel(input, scale, zero_point)
    return input.clone(), torch.ones_like(input, dtype=torch.bool)


def _learnable_per_tensor(input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *_: Any) -> torch.Tensor:
    """Scale and zero are read; the mask is dropped."""
    _read(scale, zero_point)
    return _per_tensor(input)[0]


def _read(scale: torch.Tensor, zero_point: torch.Tensor) -> None:
    for each in (scale, zero_point):
        each[0].item()


def _gradients_per_tensor(
    gradient: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *_: Any
) -> tuple[torch.Tensor, ...]:
    """Those of scale and zero are sums of one share for each number."""
    _read(scale, zero_point)
    of_input, of_scale, of_zero = (torch.empty_like(input) for _ in range(3))
    return of_input, of_scale.sum().unsqueeze(0), of_zero.sum().unsqueeze(0)


def _learnable_per_channel(input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *_: Any) -> torch.Tensor:
    """Zeros are rounded to integers first; the mask is dropped."""
    return _per_channel(input, scale, zero_point.round().to(torch.int32))[0]


def _gradients_per_channel(
    gradient: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, axis: int, *_: Any
) -> tuple[torch.Tensor, ...]:
    """As of a whole tensor, summed over all but the channels."""
    _in_range(zero_point.round())
    of_input, of_scale, of_zero = (torch.empty_like(input) for _ in range(3))
    others = [dim for dim in range(input.dim()) if dim != axis]
    return of_input, of_scale.sum(others), of_zero.sum(others)
