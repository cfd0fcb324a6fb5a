"""Operators that the card runs step by step where a fake tensor takes another path, or none.

Sources: Onehot.cpp, Distributions.cpp, LinearAlgebraUtils.h and, for the gradient of cumprod, ReduceOps.cpp, all in
ATen/native, and cuda/SummaryOps.cu. What an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def composites() -> dict[Any, Callable[..., Any]]:
    """Kernels for composite operators."""
    return {aten.one_hot.default: one_hot, aten.cumprod_backward.default: cumprod_backward}


def steps() -> dict[Any, Callable[..., Any]]:
    """What operators do that are one for autograd."""
    return {
        aten.count_nonzero.default: count_nonzero,
        aten.count_nonzero.dim_IntList: count_nonzero,
        aten.multinomial.default: multinomial,
        aten._linalg_check_errors.default: check_errors,
    }


def one_hot(indices: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """Ones are scattered into zeros; a comparison with every class is for subclasses."""
    if num_classes == -1:
        num_classes = int(indices.max()) + 1
    zeros = indices.new_zeros((*indices.shape, num_classes))
    return zeros.scatter_(-1, indices.unsqueeze(-1), 1) if indices.numel() else zeros


def cumprod_backward(grad: torch.Tensor, input: torch.Tensor, dim: int, output: torch.Tensor) -> torch.Tensor:
    """A division by the input, as long as it has no zeros: real runs rarely do, and then take another path."""
    if input.numel() <= 1 or input.shape[dim] == 1:
        return grad
    weighted = output.conj() * grad
    is_zero = input == 0
    is_zero.any()
    flipped = weighted.flip(dim)
    sums = flipped.cumsum(dim)
    reversed_sums = sums.flip(dim)
    del sums, flipped
    result = reversed_sums.div(input.conj())
    del reversed_sums, is_zero, weighted
    return result


def count_nonzero(input: torch.Tensor, dim: Any = None) -> torch.Tensor:
    """The sum of a comparison with zero, of truth values themselves."""
    if input.dtype != torch.bool:
        input = input != 0
    return input.sum() if dim is None or dim == [] else input.sum(dim)


def check_errors(infos: torch.Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Whether any decomposition failed: a real run raises an error."""
    infos.any()


def multinomial(weights: torch.Tensor, num_samples: int, replacement: bool = False, **generator: Any) -> torch.Tensor:
    """Without replacement the largest quotients of weights and exponential noise; the weights are checked."""
    result = weights.new_empty((*weights.shape[:-1], num_samples), dtype=torch.int64)
    if replacement and num_samples > 1:
        _original, normalized, sums = (torch.empty_like(weights) for _ in range(3))
        rows = (-1, weights.shape[-1])
        torch.cumsum(normalized.view(rows), 1, out=sums.view(rows))
        return result
    _checks = _checked(weights)
    quotients = torch.empty_like(weights).exponential_(1)
    torch.div(weights, quotients, out=quotients)
    if num_samples == 1:
        return torch.argmax(quotients, -1, keepdim=True, out=result)
    values = quotients.new_empty(result.shape)
    torch.topk(quotients, num_samples, out=(values, result))
    return result


def _checked(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """That all weights are finite and none negative; that no row is zero."""
    highest = weights.max()
    is_finite = highest < float("inf")
    lowest = weights.min()
    is_valid = is_finite & (lowest >= 0)
    del lowest, is_finite, highest
    if weights.dim() == 1:
        return is_valid, (weights.sum() == 0).logical_not()
    return is_valid, (weights.sum(1) == 0).any().logical_not()
