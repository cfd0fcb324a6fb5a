"""Which kernel the card takes for one call of `scaled_dot_product_attention`.

Mirrors `select_sdp_backend` of ATen/native/transformers/cuda/sdp_utils.cpp and the checks of
ATen/native/transformers/sdp_utils_cpp.h. What differs between releases was read from libtorch_cuda.so of the wheels
of 2.11, 2.13 and 2.14; an H200 chose the same (torch 2.11+cu130, cuDNN 9.19, 2026-11-28, benchmarks/operators).
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import torch

from peaksight.virtual_gpu.device_rules import DeviceRules

HALF = (torch.float16, torch.bfloat16)
Shape = tuple[int, ...]
# Since this release cuDNN is passed by for a dropout that is no multiple of 1/16 (pytorch#174245).
CUDNN_DROPOUT_SINCE = (2, 12)
# Since this release the memory-efficient kernel wants aligned storages.
ALIGNED_SINCE = (2, 13)
# Since this release unbatched calls get a batch of one, a single key head serves all query heads, and the
# memory-efficient kernel takes grouped heads.
UNBATCHED_SINCE = SINGLE_KEY_HEAD_SINCE = GROUPED_HEADS_SINCE = (2, 14)


class Backend(IntEnum):
    """The implementations of scaled dot product attention, numbered as `torch.nn.attention.SDPBackend`."""

    MATH = 0
    FLASH = 1
    EFFICIENT = 2
    CUDNN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the choice looks at. Shapes are (batch, heads, length, head size); `dtype` is None where they differ."""

    query: Shape
    key: Shape
    value: Shape
    dtype: torch.dtype | None
    mask: Shape | None = None
    mask_needs_grad: bool = False
    dropout: float = 0.0
    is_causal: bool = False
    needs_grad: bool = True
    grouped: bool = False
    contiguous_last: bool = True
    aligned: bool = True


def priority(rules: DeviceRules) -> tuple[Backend, ...]:
    """Hopper and Blackwell of data centres put cuDNN first, where the build has one newer than 9.15."""
    deprioritized = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED") == "1"
    if rules.capability[0] in (9, 10) and rules.cudnn > 91500 and not deprioritized:
        return (Backend.CUDNN, Backend.FLASH, Backend.EFFICIENT, Backend.MATH)
    return (Backend.FLASH, Backend.EFFICIENT, Backend.MATH, Backend.CUDNN)


def choose_backend(
    call: Call, rules: DeviceRules, enabled: frozenset[Backend], order: Iterable[int] = ()
) -> Backend | None:
    """The first backend of `order` (the card's own without one) that is enabled and takes the call."""
    takes = {Backend.CUDNN: _cudnn, Backend.FLASH: _flash, Backend.EFFICIENT: _efficient, Backend.MATH: _math}
    for backend in order or priority(rules):
        if backend in enabled and takes[Backend(backend)](call, rules):
            return Backend(backend)
    return None


def _math(call: Call, rules: DeviceRules) -> bool:
    return True


def _cudnn(call: Call, rules: DeviceRules) -> bool:
    return (
        _fused(call, rules, grouped=True, same_key_heads=False)
        and call.dtype in HALF
        and (8, 0) <= rules.capability <= (12, 1)
        and _mask_fits_cudnn(call)
        and _heads_fit_cudnn(call, rules)
        and call.key[2] != 1
        and not (call.dropout and call.query[2] == 1)
        and not (call.dropout and 91100 < rules.cudnn < 91400)
        and (rules.torch < CUDNN_DROPOUT_SINCE or (call.dropout * 16).is_integer())
        and not _must_be_deterministic()
    )


def _flash(call: Call, rules: DeviceRules) -> bool:
    head = call.query[-1]
    small_card = (8, 6) <= rules.capability <= (8, 9) or rules.capability in ((12, 0), (12, 1))
    return (
        _fused(call, rules, grouped=True)
        and call.dtype in HALF
        and (8, 0) <= rules.capability <= (12, 1)
        and call.mask is None
        and head == call.key[3] == call.value[3]
        and head <= 256
        and not (small_card and call.needs_grad and 192 < head and (head <= 224 or call.dropout))
        and not (call.is_causal and call.query[2] != call.key[2])
    )


def _efficient(call: Call, rules: DeviceRules) -> bool:
    before_ampere = rules.capability < (8, 0)
    dtypes = (torch.float16,) if before_ampere else HALF
    multiple = 8 if call.dtype in HALF else 1 if before_ampere else 4
    return (
        _fused(call, rules, grouped=rules.torch >= GROUPED_HEADS_SINCE)
        and call.dtype in (torch.float32, *dtypes)
        and call.query[3] == call.key[3]
        and min(call.query[3], call.value[3]) > 0
        and call.query[3] % multiple == call.value[3] % multiple == 0
        and (call.aligned or before_ampere or rules.torch < ALIGNED_SINCE)
    )


def _fused(call: Call, rules: DeviceRules, *, grouped: bool, same_key_heads: bool = True) -> bool:
    """What every fused kernel asks for; `grouped` where it takes fewer key heads than query heads."""
    return (
        len(call.query) == len(call.key) == len(call.value) == 4
        and call.contiguous_last
        and call.query[0] == call.key[0] == call.value[0]
        and min(call.query[2], call.key[2]) > 0
        and _heads_match(call, rules, grouped, same_key_heads)
    )


def _heads_match(call: Call, rules: DeviceRules, grouped: bool, same_key_heads: bool) -> bool:
    heads, key_heads, value_heads = call.query[1], call.key[1], call.value[1]
    if call.grouped and grouped:
        return heads % key_heads == heads % value_heads == 0 and (key_heads == value_heads or not same_key_heads)
    single = key_heads == value_heads == 1 and rules.torch >= SINGLE_KEY_HEAD_SINCE
    return heads == key_heads == value_heads or single


def _mask_fits_cudnn(call: Call) -> bool:
    """A mask of two or four dimensions that broadcasts to the scores, and that wants no gradient."""
    if call.mask is None:
        return True
    scores = (*call.query[:3], call.key[2])[-len(call.mask) :]
    broadcasts = all(size in (1, wanted) for size, wanted in zip(call.mask, scores, strict=False))
    return not call.mask_needs_grad and len(call.mask) in (2, 4) and broadcasts


def _heads_fit_cudnn(call: Call, rules: DeviceRules) -> bool:
    """Head sizes of 128 everywhere, and up to 256 where the card, cuDNN and the release know how."""
    head, value_head = sizes = call.query[3], call.value[3]
    limit = 128
    if rules.torch < (2, 14):
        if rules.capability == (9, 0) and rules.cudnn >= 91000:
            limit = 256
        elif rules.capability[0] == 10 and rules.cudnn >= 91100 and sizes == (192, 128):
            limit = 192
    elif rules.capability == (9, 0) or rules.capability[0] == 10:
        if rules.cudnn > 92200:
            has_backward = max(sizes) <= 128 or sizes in ((192, 128), (256, 256))
            limit = 256 if has_backward or not call.needs_grad else 0
        elif rules.cudnn >= 91100 and sizes == (192, 128):
            limit = 192
    return max(sizes) <= limit and head % 8 == value_head % 8 == 0


def _must_be_deterministic() -> bool:
    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()
