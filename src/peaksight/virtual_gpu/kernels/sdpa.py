"""Which kernel `scaled_dot_product_attention` takes on the card, and the call that it makes.

Mirrors `select_sdp_backend` of ATen/native/transformers/cuda/sdp_utils.cpp and the composite in attention.cpp.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch
import torch.nn.functional as F

from peaksight.virtual_gpu.device_rules import DeviceRules

aten = torch.ops.aten
# Before, the memory-efficient kernel wanted as many key heads as query heads (measured on 2.11).
GROUPED_HEADS_SINCE = (2, 14)
HALF = (torch.float16, torch.bfloat16)


class Backend(StrEnum):
    """The four implementations of scaled dot product attention."""

    CUDNN = "cudnn"
    FLASH = "flash"
    EFFICIENT = "efficient"
    MATH = "math"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the choice looks at. Shapes are (batch, heads, length, head size)."""

    query: tuple[int, ...]
    key: tuple[int, ...]
    value: tuple[int, ...]
    dtype: torch.dtype
    has_mask: bool
    dropout: float
    is_causal: bool
    needs_grad: bool
    contiguous_last: bool


def choose_backend(call: Call, rules: DeviceRules, enabled: frozenset[Backend]) -> Backend:
    """The first usable backend of the card's order; math when none is."""
    usable = {Backend.CUDNN: _cudnn_takes, Backend.FLASH: _flash_takes, Backend.EFFICIENT: _efficient_takes}
    if len(call.query) == 4 and call.contiguous_last and call.query[2] and call.key[2]:
        for backend in _order(rules):
            if backend in enabled and usable[backend](call, rules):
                return backend
    return Backend.MATH


def _order(rules: DeviceRules) -> tuple[Backend, ...]:
    """Hopper and sm100 put cuDNN first where the build ships cuDNN > 9.15 (torch 2.11+cu130 on)."""
    if rules.capability[0] in (9, 10) and int(rules.cuda.split(".")[0]) >= 13:
        return (Backend.CUDNN, Backend.FLASH, Backend.EFFICIENT)
    return (Backend.FLASH, Backend.EFFICIENT)


def _cudnn_takes(call: Call, rules: DeviceRules) -> bool:
    head, value_head = call.query[3], call.value[3]
    training_sizes = not call.needs_grad or (call.key[2] != 1 and not (call.query[2] == 1 and call.dropout))
    return (
        call.dtype in HALF
        and head % 8 == 0
        and value_head % 8 == 0
        and (max(head, value_head) <= 128 or (head, value_head) == (192, 128))
        and training_sizes
        and (call.dropout * 16).is_integer()
        and not torch.are_deterministic_algorithms_enabled()
    )


def _flash_takes(call: Call, rules: DeviceRules) -> bool:
    head = call.query[3]
    ada_limit = rules.capability in ((8, 6), (8, 9), (12, 0), (12, 1)) and call.needs_grad
    return (
        call.dtype in HALF
        and rules.capability >= (8, 0)
        and not call.has_mask
        and head == call.key[3] == call.value[3]
        and head <= 256
        and not (ada_limit and 192 < head and (head <= 224 or call.dropout))
        and not (call.is_causal and call.query[2] != call.key[2])
    )


def _efficient_takes(call: Call, rules: DeviceRules) -> bool:
    dtypes = (torch.float32, *HALF) if rules.capability >= (8, 0) else (torch.float32, torch.float16)
    multiple = 4 if call.dtype == torch.float32 else 8
    return (
        call.dtype in dtypes
        and (call.query[1] == call.key[1] or rules.torch >= GROUPED_HEADS_SINCE)
        and call.query[3] == call.key[3]
        and call.query[3] % multiple == 0
        and call.value[3] % multiple == 0
    )


def enabled_backends() -> frozenset[Backend]:
    """The backends that `torch.backends.cuda` and `sdpa_kernel` leave on."""
    switches = {
        Backend.CUDNN: torch.backends.cuda.cudnn_sdp_enabled(),
        Backend.FLASH: torch.backends.cuda.flash_sdp_enabled(),
        Backend.EFFICIENT: torch.backends.cuda.mem_efficient_sdp_enabled(),
        Backend.MATH: torch.backends.cuda.math_sdp_enabled(),
    }
    return frozenset(backend for backend, on in switches.items() if on)


def attention(rules: DeviceRules) -> Callable:
    """The card's `aten::scaled_dot_product_attention`."""

    def kernel(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        needs_grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        call = Call(
            query=tuple(query.shape), key=tuple(key.shape), value=tuple(value.shape), dtype=query.dtype,
            has_mask=attn_mask is not None, dropout=dropout_p, is_causal=is_causal, needs_grad=needs_grad,
            contiguous_last=all(t is None or t.stride(-1) == 1 for t in (query, key, value, attn_mask)),
        )  # fmt: skip
        enabled = enabled_backends()
        backend = choose_backend(call, rules, enabled)
        if backend not in enabled:
            raise RuntimeError("No available kernel. Aborting execution.")
        if backend is Backend.FLASH:
            return _flash(query, key, value, dropout_p, is_causal, scale)
        mask = _as_bias(attn_mask, query.dtype)
        if backend is Backend.CUDNN:
            return aten._scaled_dot_product_cudnn_attention(
                query, key, value, mask, needs_grad, dropout_p, is_causal, False, scale=scale
            )[0]
        if backend is Backend.EFFICIENT:
            return _efficient(query, key, value, mask, needs_grad, dropout_p, is_causal, scale, enable_gqa)
        return aten._scaled_dot_product_attention_math(
            query, key, value, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
        )[0]

    return kernel


def _as_bias(mask: Any, dtype: torch.dtype) -> Any:
    """A boolean mask becomes 0 where it is true and -inf elsewhere, in the dtype of the query."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    bias = aten.zeros_like.default(mask, dtype=dtype)
    return aten.masked_fill_.Scalar(bias, aten.logical_not.default(mask), float("-inf"))


def _flash(query: Any, key: Any, value: Any, dropout: float, is_causal: bool, scale: float | None) -> Any:
    """Flash pads the head size to a multiple of 8 and cuts the result."""
    head = query.shape[-1]
    scale = head**-0.5 if scale is None else scale
    padding = -head % 8
    if padding:
        query, key, value = (aten.constant_pad_nd.default(t, [0, padding]) for t in (query, key, value))
    out = aten._scaled_dot_product_flash_attention.default(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return aten.slice.Tensor(out, -1, 0, head) if padding else out


def _efficient(
    query: Any, key: Any, value: Any, mask: Any, needs_grad: bool, dropout: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> Any:  # fmt: skip
    """The memory-efficient kernel wants as many key heads as query heads and a mask aligned to 16 elements."""
    if enable_gqa and key.shape[1] != query.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = (aten.repeat_interleave.self_int(t, repeats, 1) for t in (key, value))
    if mask is not None:
        mask = _aligned(mask).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    needs_statistics = needs_grad or (mask is not None and mask.requires_grad)
    return aten._scaled_dot_product_efficient_attention.default(
        query, key, value, mask, needs_statistics, dropout, is_causal, scale=scale
    )[0]


def _aligned(mask: torch.Tensor) -> torch.Tensor:
    length = mask.shape[-1]
    if length % 16 == 0:
        return mask
    return F.pad(mask, (0, 16 - length % 16))[..., :length]
