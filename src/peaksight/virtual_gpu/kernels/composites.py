"""Composite operators that decompose otherwise on the card than on meta tensors.

Each rule is a kernel for the dispatch key AutogradCUDA, where every caller arrives: torch.nn.functional, modules,
C++ composites and fast paths. The mode uses the same rules for tensors that autograd skips (inference mode).
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels import flex_attention, index_composites
from peaksight.virtual_gpu.kernels.batch_norm import batch_norm
from peaksight.virtual_gpu.kernels.losses import ctc_loss
from peaksight.virtual_gpu.kernels.products import product_rules
from peaksight.virtual_gpu.kernels.recurrent import recurrent_rules
from peaksight.virtual_gpu.kernels.recurrent_cells import cell_rules
from peaksight.virtual_gpu.kernels.sdpa import attention, attention_math
from peaksight.virtual_gpu.kernels.sdpa_choice import priority
from peaksight.virtual_gpu.kernels.torch_private import (
    below_autograd,
    composite,
    is_composite,
    sdp_priority,
    set_sdp_priority,
)
from peaksight.virtual_gpu.tensors.devices import is_virtual_cuda
from peaksight.virtual_gpu.tensors.values import assume

aten = torch.ops.aten

# One kernel on CUDA, taken apart elsewhere.
ACTIVATION_BACKWARDS = ("silu_backward", "mish_backward")


def composite_rules(rules: DeviceRules, note: Callable[[str], None]) -> dict[Any, Callable[..., Any]]:
    """What the card runs in place of each composite operator; `note(slug)` is told what is only approximated."""
    return (
        recurrent_rules(note)
        | cell_rules()
        | index_composites.composites()
        | {
            aten.scaled_dot_product_attention.default: attention(rules),
            aten._scaled_dot_product_attention_math.default: attention_math,
            aten.batch_norm.default: batch_norm,
            aten.dropout.default: _dropout,
            aten.group_norm.default: _group_norm(rules),
            aten.isfinite.default: _isfinite,
            aten.linear.default: _linear,
            aten.log_softmax.int: _softmax(aten._log_softmax.default, aten.log_softmax.int),
            aten.softmax.int: _softmax(aten._softmax.default, aten.softmax.int),
            aten.ctc_loss.Tensor: ctc_loss,
        }
    )


def install(
    patches: Patches, device: DeviceRules, rules: dict[Any, Callable[..., Any]], note: Callable[[str], None]
) -> None:  # fmt: skip
    """Register the rules below autocast until `patches` is left; `note(slug)` as for `composite_rules`."""
    # Where CUDA has a kernel autograd has one too, and the operator is not taken apart; the mode answers for it.
    patches.set_kernels("CUDA", {"_fused_rms_norm": fused_rms_norm, **dict.fromkeys(ACTIVATION_BACKWARDS, _like_input)})
    above = rules | product_rules()  # these are one operator below autograd
    patches.set_kernels("AutogradCUDA", _by_name(above))
    apart = {op: kernel for op, kernel in rules.items() if is_composite(op)}
    fused = {aten._fused_rms_norm.default: lambda *args: _FusedRmsNorm.apply(*args)}
    patches.set_kernels("AutogradMeta", _by_name({op: _of_dtensors(op, each) for op, each in (apart | fused).items()}))
    patches.callback(set_sdp_priority, sdp_priority())
    set_sdp_priority([int(backend) for backend in priority(device)])
    flex_attention.install(patches, note)


def _by_name(kernels: dict[Any, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    return {op.name().removeprefix("aten::"): kernel for op, kernel in kernels.items()}


def _of_dtensors(op: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` where an argument is a DTensor on the card, which has the dispatch keys of meta tensors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (kernel if any(map(is_virtual_cuda, args)) else composite(op))(*args, **kwargs)

    return call


def _dropout(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Dropout on CUDA is `native_dropout`: it keeps a boolean mask, one byte an element."""
    if not (p and train and input.numel()):
        return input
    return aten.native_dropout.default(input, p, True)[0] if p < 1 else input * input.new_zeros(())


def _group_norm(rules: DeviceRules) -> Callable[..., Any]:
    """Before torch 2.14 its kernels know contiguous tensors alone: ATen/native/group_norm.cpp."""

    def kernel(input: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        given = input.contiguous() if rules.torch < (2, 14) else input
        return composite(aten.group_norm.default)(given, *args, **kwargs)

    return kernel


def _like_input(gradient: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(input)


def fused_rms_norm(
    input: torch.Tensor, normalized_shape: list[int], weight: Any, eps: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output, and the reciprocal root of each row's mean square in the type that the card accumulates in."""
    num_rows_dims = input.dim() - len(normalized_shape)
    rows = (*input.shape[:num_rows_dims], *(1 for _ in normalized_shape))
    dtype = torch.float64 if input.dtype == torch.float64 else torch.float32
    return torch.empty_like(input, memory_format=torch.contiguous_format), input.new_empty(rows, dtype=dtype)


class _FusedRmsNorm(torch.autograd.Function):
    """What autograd makes of the kernel, for DTensors."""

    @staticmethod
    def forward(ctx: Any, input: Any, normalized_shape: list[int], weight: Any, eps: float | None) -> Any:
        with below_autograd():
            output, rstd = aten._fused_rms_norm.default(input, normalized_shape, weight, eps)
        ctx.save_for_backward(input, weight, rstd)
        ctx.mark_non_differentiable(rstd)
        ctx.normalized_shape = normalized_shape
        return output, rstd

    @staticmethod
    def backward(ctx: Any, gradient: Any, _: Any) -> Any:
        input, weight, rstd = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[0], ctx.needs_input_grad[2]]
        of_input, of_weight = aten._fused_rms_norm_backward.default(
            gradient, input, ctx.normalized_shape, rstd, weight, wanted
        )
        return of_input, None, of_weight, None


def _isfinite(input: torch.Tensor) -> torch.Tensor:
    """A run that works is finite: loops that skip a step without it do not."""
    return assume(composite(aten.isfinite.default)(input), True)


def _softmax(kernel: Any, op: Any) -> Callable[..., Any]:
    """From float16, as autocast has it, one kernel gives float32: `softmax` of ATen/native/SoftMax.cpp."""

    def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        if input.dtype == torch.float16 and dtype == torch.float32:
            return kernel(input, dim, True)
        return composite(op)(input, dim, dtype)

    return softmax


def _linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Where the input cannot be flattened, the bias is added in place: ATen/native/Linear.cpp."""
    if bias is None or input.dim() == 2 or (input.is_contiguous() and (input.dim() == 3 or bias.dim() == 1)):
        return composite(aten.linear.default)(input, weight, bias)
    return torch.matmul(input, weight.t()).add_(bias)
