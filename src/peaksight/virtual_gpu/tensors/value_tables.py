"""Operators whose values are known without those of their arguments, or are taken to be."""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

# On finite values these give the same answer everywhere: a training run that works is assumed to be finite.
ON_FINITE_VALUES = {aten.isnan.default: False}
# What they return has any value: as good as another, and overwritten by scatter_ or indexing. That of the last is
# zero without a byte of memory, which no kernel of the host may read: the tangents of forward-mode AD begin as such.
UNINITIALISED = {
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
    aten._efficientzerotensor.default,
}
# Their values do not depend on those of their first argument, only its shape does.
BY_SHAPE_ALONE = {
    aten.ones_like.default,
    aten.zeros_like.default,
    aten.full_like.default,
    aten.new_ones.default,
    aten.new_zeros.default,
    aten.new_full.default,
    aten.rand_like.default,
    aten.bernoulli.p,
    aten.randint_like.default,
    aten.randint_like.low_dtype,
}
# Their values do not depend on those that they write over, which views of these share.
OVERWRITE = {aten.zero_.default, aten.fill_.Scalar, aten.bernoulli_.float, aten.bernoulli_.Tensor}
# Each of their elements is the same number.
FILLED: dict[Any, Callable[[tuple[Any, ...]], Any]] = {
    **dict.fromkeys((aten.ones.default, aten.ones_like.default, aten.new_ones.default), lambda args: 1),
    **dict.fromkeys((aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default), lambda args: 0),
    **dict.fromkeys((aten.full.default, aten.full_like.default), lambda args: args[1]),
}
# Libraries ask whether all is well before they go on: in a run that works it is.
ALL = {aten.all.default, aten.all.dim, aten._is_all_true.default}
# Of a mask, before a branch selects by it.
ANY = {aten.any.default, aten.any.dim}
# The gradients of a run that works are finite, so `found_inf` keeps the zero it was made with.
KEEPS_FOUND_INF = aten._amp_foreach_non_finite_check_and_unscale_.default
