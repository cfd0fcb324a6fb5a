"""Operators of the card for which torch has no fake kernel, or one for other devices."""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels import (
    batch_norm,
    decompositions,
    grouped_products,
    images,
    recurrent_cells,
    sync_batch_norm,
)
from peaksight.virtual_gpu.kernels.composites import fused_rms_norm
from peaksight.virtual_gpu.tensors.known import known_value

IN_PLACE = (
    "aten::_fused_sgd_",
    "aten::_fused_sgd_.tensor_lr",
    "aten::_fused_adagrad_",
    "aten::_fused_adagrad_.tensor_lr",
    "aten::_fused_adam_.tensor_lr",
    "aten::_fused_adamw_.tensor_lr",
)


def fake_kernels() -> dict[str, Callable[..., Any]]:
    """A rule `(mode, run, args, kwargs)` by operator name."""
    return {
        **recurrent_cells.fake_kernels(),
        **batch_norm.FAKE_KERNELS,
        **sync_batch_norm.FAKE_KERNELS,
        **decompositions.FAKE_KERNELS,
        **grouped_products.FAKE_KERNELS,
        **images.FAKE_KERNELS,
        "aten::_fused_rms_norm": _fused_rms_norm,
        "aten::_scaled_dot_product_cudnn_attention": _cudnn_attention,
        "aten::_efficient_attention_backward": _efficient_attention_backward,
        "aten::_masked_softmax": _like_first_argument,
        "aten::index_fill.int_Tensor": _like_first_argument,
        "aten::index_fill_.int_Tensor": lambda mode, run, args, kwargs: args[0],
        "aten::_nested_tensor_from_mask_left_aligned": _is_left_aligned,
        "aten::_softmax_backward_data": _gradient_of_softmax,
        "aten::_log_softmax_backward_data": _gradient_of_softmax,
        "aten::_sample_dirichlet": _like_first_argument,
        "aten::_dirichlet_grad": _like_first_argument,
        "aten::_standard_gamma": _like_first_argument,
        "aten::_standard_gamma_grad": _like_first_argument,
        "aten::poisson": _like_first_argument,
        "aten::binomial": _like_first_argument,
        "aten::_ctc_loss_backward": _like_second_argument,
        "aten::_ctc_loss_backward.Tensor": _like_second_argument,
        "aten::multi_margin_loss_backward": _like_second_argument,
        "aten::multilabel_margin_loss_backward": _like_second_argument,
        **dict.fromkeys(IN_PLACE, lambda mode, run, args, kwargs: None),
    }


def _fused_rms_norm(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    with mode:
        return fused_rms_norm(*args, **kwargs)


def _cudnn_attention(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Without gradients there are no statistics."""
    out, statistics, *rest = run(args, kwargs)
    with mode:
        return out, statistics if args[4] else statistics.new_empty(0), *rest


def _efficient_attention_backward(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """In rows, and of a bias that wants a gradient in multiples of 16 elements: torch's own takes no `scale`."""
    query, key, value, bias = args[1:5]
    with mode:
        gradients = [tensor.new_empty(tensor.shape) for tensor in (query, key, value)]
        if bias is None or not args[15]:
            return *gradients, None
        padded = bias.new_empty((*bias.shape[:-1], -(-bias.shape[-1] // 16) * 16))
        return *gradients, padded[..., : bias.shape[-1]]


def _like_first_argument(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    with mode:
        return torch.empty_like(args[0])


def _gradient_of_softmax(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    """Row by row, however the incoming gradient lies."""
    grad, _, _, dtype = args
    with mode:
        return grad.new_empty(grad.shape, dtype=dtype)


def _like_second_argument(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    """The gradient of the second argument, row by row however that one lies."""
    with mode:
        return torch.empty_like(args[1], memory_format=torch.contiguous_format)


def _is_left_aligned(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether no word that the mask keeps follows one that it drops; padding that nobody knows is at the end."""
    kept = known_value(args[1])
    if kept is None:
        mode.made_up_value()
        return True
    return bool((kept.int().diff(dim=1) <= 0).all())
