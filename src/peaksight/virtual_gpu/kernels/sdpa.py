"""What the card runs for `scaled_dot_product_attention`: the composite of ATen/native/transformers/attention.cpp."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.sdpa_choice import HALF, UNBATCHED_SINCE, Backend, Call, choose_backend
from peaksight.virtual_gpu.kernels.torch_private import sdp_priority

aten = torch.ops.aten
# The memory-efficient kernel reads its bias, and wants it laid out, in runs of this many elements.
BIAS_ALIGNMENT = 8
# The vector loads of the memory-efficient kernel, in bytes.
STORAGE_ALIGNMENT = 16


def enabled_backends() -> frozenset[Backend]:
    """The backends that `torch.backends.cuda` and `sdpa_kernel` leave on."""
    switches = {
        Backend.CUDNN: torch.backends.cuda.cudnn_sdp_enabled(),
        Backend.FLASH: torch.backends.cuda.flash_sdp_enabled(),
        Backend.EFFICIENT: torch.backends.cuda.mem_efficient_sdp_enabled(),
        Backend.MATH: torch.backends.cuda.math_sdp_enabled(),
    }
    return frozenset(backend for backend, on in switches.items() if on)


def attention(rules: DeviceRules) -> Callable[..., Any]:
    """The card's `aten::scaled_dot_product_attention`."""

    def kernel(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        if rules.torch >= UNBATCHED_SINCE and query.dim() == key.dim() == value.dim() == 3:
            query, key, value, attn_mask = (_batched(t) for t in (query, key, value, attn_mask))
            return kernel(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            ).squeeze(0)  # fmt: skip
        backend = backend_for(rules, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
        if backend is Backend.FLASH:
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if backend is Backend.MATH:
            bias = _as_bias(attn_mask, query.dtype)  # to the end, as in C++
            return attention_math(query, key, value, bias, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
        if backend is Backend.CUDNN:
            return _cudnn(query, key, value, _as_bias(attn_mask, query.dtype), dropout_p, is_causal, scale)
        key, value = _for_each_query_head(query, key, value, enable_gqa)
        return _efficient(query, key, value, _as_bias(attn_mask, query.dtype), dropout_p, is_causal, scale)

    return kernel


def backend_for(
    rules: DeviceRules, query: Any, key: Any, value: Any, mask: Any = None, dropout: float = 0.0,
    is_causal: bool = False, grouped: bool = False,
) -> Backend:  # fmt: skip
    """The backend of one call on the card."""
    call = _describe(query, key, value, mask, dropout, is_causal, grouped)
    backend = choose_backend(call, rules, enabled_backends(), sdp_priority())
    if backend is None:
        raise RuntimeError("No available kernel. Aborting execution.")
    return backend


def _batched(tensor: Any) -> Any:
    return tensor if tensor is None else tensor[(None,) * (4 - tensor.dim())]


def _describe(query: Any, key: Any, value: Any, mask: Any, dropout: float, is_causal: bool, grouped: bool) -> Call:
    inputs = (query, key, value)
    with_mask = inputs if mask is None else (*inputs, mask)
    return Call(
        query=tuple(query.shape), key=tuple(key.shape), value=tuple(value.shape),
        dtype=query.dtype if query.dtype == key.dtype == value.dtype else None,
        mask=None if mask is None else tuple(mask.shape), mask_needs_grad=mask is not None and mask.requires_grad,
        dropout=dropout, is_causal=is_causal, grouped=grouped,
        needs_grad=_needs_grad(*inputs),
        contiguous_last=all(t.stride(-1) == 1 for t in with_mask),
        aligned=all(t.storage_offset() * t.itemsize % STORAGE_ALIGNMENT == 0 for t in inputs),
    )  # fmt: skip


def _needs_grad(*inputs: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in inputs)


def _as_bias(mask: Any, dtype: torch.dtype) -> Any:
    """A boolean mask becomes 0 where it is true and -inf elsewhere, in the dtype of the query."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    seen_and_hidden = (0.0, float("-inf"))
    return aten.where.self(
        mask, *(aten.scalar_tensor.default(v, dtype=dtype, device=mask.device) for v in seen_and_hidden)
    )


def _flash(query: Any, key: Any, value: Any, dropout: float, is_causal: bool, scale: float | None) -> Any:
    """Flash pads the head size to a multiple of 8 and cuts the result."""
    head = query.shape[-1]
    scale = head**-0.5 if scale is None else scale
    padding = -head % 8
    if padding:
        query, key, value = (aten.constant_pad_nd.default(t, [0, padding]) for t in (query, key, value))
    attend = aten._scaled_dot_product_flash_attention.default
    out = _first_of(list(attend(query, key, value, dropout, is_causal, False, scale=scale)))
    return aten.slice.Tensor(out, -1, 0, head) if padding else out


def _cudnn(
    query: Any, key: Any, value: Any, bias: Any, dropout: float, is_causal: bool, scale: float | None
) -> Any:  # fmt: skip
    needs_statistics = _needs_grad(query, key, value)
    attend = aten._scaled_dot_product_cudnn_attention.default
    given = (query, key, value, bias, needs_statistics, dropout, is_causal, False)
    return _first_of(list(attend(*given, scale=scale)))


def _efficient(
    query: Any, key: Any, value: Any, bias: Any, dropout: float, is_causal: bool, scale: float | None
) -> Any:  # fmt: skip
    """The memory-efficient kernel wants as many key heads as query heads, and an aligned bias."""
    if bias is not None:
        bias = _aligned(bias).expand(*query.shape[:3], key.shape[2])
    needs_statistics = _needs_grad(query, key, value) or (bias is not None and bias.requires_grad)
    attend = aten._scaled_dot_product_efficient_attention.default
    return _first_of(list(attend(query, key, value, bias, needs_statistics, dropout, is_causal, scale=scale)))


def _first_of(outputs: list[Any]) -> Any:
    """The first of `outputs`; the others are given back from the first to the last, as those of a tuple in C++."""
    first = outputs.pop(0)
    while outputs:
        outputs.pop(0)
    return first


def _for_each_query_head(query: Any, key: Any, value: Any, enable_gqa: bool) -> list[Any]:
    heads = query.shape[-3]
    if not enable_gqa:
        return [t.expand(-1, heads, -1, -1) if t.shape[-3] != heads else t for t in (key, value)]
    return [
        t if t.shape[-3] == heads else aten.repeat_interleave.self_int(t, heads // t.shape[-3], -3)
        for t in (key, value)
    ]


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    if bias.stride(-1) == 1 and all(stride % BIAS_ALIGNMENT == 0 for stride in bias.stride()[:-1]):
        return bias
    length = bias.shape[-1]
    return F.pad(bias, (0, BIAS_ALIGNMENT - length % BIAS_ALIGNMENT))[..., :length]


def attention_math(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    dropout_mask: Any = None, *, scale: float | None = None, enable_gqa: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """The unfused attention; half precision is computed in single unless `torch.backends.cuda` allows otherwise."""
    dtype = query.dtype
    accurate = tuple(_accurate(t) for t in (query, key, value))  # to the end, as in C++
    query, key, value = accurate
    factor = (query.shape[-1] ** -0.5 if scale is None else abs(scale)) ** 0.5
    query = query * (factor if scale is None or scale >= 0 else -factor)
    if is_causal:
        attn_mask = _as_bias(_lower_triangle(query, key), query.dtype)
    if enable_gqa:
        key, value = _for_each_query_head(query, key, value, enable_gqa)
    return _weighted(_weights(query, key, factor, attn_mask), value, dropout_p, dropout_mask, dtype)


def _accurate(tensor: torch.Tensor) -> torch.Tensor:
    half_is_enough = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    return tensor.float() if tensor.dtype in HALF and not half_is_enough else tensor


def _lower_triangle(query: Any, key: Any) -> Any:
    return query.new_ones((query.shape[-2], key.shape[-2]), dtype=torch.bool).tril()


def _weights(query: Any, key: Any, factor: float, mask: Any) -> Any:
    scores = torch.matmul(query, key.transpose(-2, -1) * factor)
    if mask is not None:
        scores.add_(mask)  # out of place where a subclass asks, which the card's tensors are not
    return aten._safe_softmax.default(scores, -1)


def _weighted(weights: Any, value: Any, dropout: float, dropout_mask: Any, dtype: torch.dtype) -> tuple[Any, Any]:
    if dropout_mask is not None:
        weights, value = weights.masked_fill(dropout_mask.logical_not(), 0.0), value * (1 / (1 - dropout))
    elif dropout:
        weights = aten.dropout.default(weights, dropout, True)
    returned = weights.to(dtype)
    return torch.matmul(weights, value).to(dtype), returned
