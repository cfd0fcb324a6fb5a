"""Operators that are one for autograd and several for the card: their C++ composites run, step by step.

A fake kernel gives such an operator's result at once and so misses what its steps take on the way. Their C++ functions
(dispatch key CompositeExplicitAutograd and its NonFunctional twin in native_functions.yaml) are the same on any device.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.tensors.values import assume

aten = torch.ops.aten

KEYS = (
    torch._C.DispatchKey.CompositeExplicitAutograd,
    torch._C.DispatchKey.CompositeExplicitAutogradNonFunctional,
)
OPERATORS = (
    aten._euclidean_dist.default,
    aten._safe_softmax.default,
    aten._trilinear.default,
    aten._unsafe_masked_index.default,
    aten._unsafe_masked_index_put_accumulate.default,
    aten.affine_grid_generator.default,
    aten.binary_cross_entropy_with_logits.default,
    aten.dist.default,
    aten.ldexp.Tensor,
    aten.ldexp.out,
    aten.linalg_pinv.atol_rtol_tensor,
    aten.logsumexp.default,
    aten.logsumexp.out,
    aten.masked_scatter_backward.default,
    aten.mvlgamma.default,
    aten.rrelu_with_noise_backward.default,
    aten.soft_margin_loss.default,
    aten.soft_margin_loss.out,
    aten.soft_margin_loss_backward.default,
    aten.soft_margin_loss_backward.grad_input,
)


def explicit_rules() -> dict[Any, Callable[..., Any]]:
    """The C++ function of each of these operators."""
    return {op: _stepwise(op) for op in OPERATORS} | {aten.isinf.default: _isinf}


def _stepwise(op: Any) -> Callable[..., Any]:
    key = next(key for key in KEYS if op.has_kernel_for_dispatch_key(key))
    return lambda *args, **kwargs: op._op_dk(key, *args, **kwargs)


def _isinf(input: torch.Tensor) -> torch.Tensor:
    """A run that works is finite."""
    return assume(_stepwise(aten.isinf.default)(input), False)
