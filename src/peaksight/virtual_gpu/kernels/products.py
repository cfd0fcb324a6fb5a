"""The gradient of a product: torch/csrc/autograd/FunctionsManual.cpp, `prod_backward`.

For a tensor subclass C++ takes the long way that is safe where factors are zero. On the card it looks for zeros, and
without any divides the product by each factor; factors of training are taken to be none.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.torch_private import below_autograd
from peaksight.virtual_gpu.tensors.values import assume

aten = torch.ops.aten


def product_rules() -> dict[Any, Callable[..., Any]]:
    """The product of all elements, and along one dimension."""
    return {aten.prod.default: _prod, aten.prod.dim_int: _prod_along}


def _prod(input: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _Product.apply(input, None, False, dtype)


def _prod_along(
    input: torch.Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    return _Product.apply(input, dim, keepdim, dtype)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, dim: int | None, keepdim: bool, dtype: Any) -> torch.Tensor:
        with below_autograd():
            if dim is None:
                result = aten.prod.default(input, dtype=dtype)
            else:
                result = aten.prod.dim_int(input, dim, keepdim, dtype=dtype)
        ctx.save_for_backward(input, result)
        ctx.dim, ctx.keepdim = dim, keepdim
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        input, result = ctx.saved_tensors
        input = input.to(grad.dtype)
        if not input.dim():
            return grad, None, None, None
        if ctx.dim is None:
            assume(input == 0, False).nonzero()
            return grad * (result / input), None, None, None
        if not ctx.keepdim:
            grad, result = grad.unsqueeze(ctx.dim), result.unsqueeze(ctx.dim)
        is_zero = assume(input == 0, False)
        num_zeros = is_zero.sum(ctx.dim, keepdim=True)
        num_zeros.sum()
        return grad * (result / input), None, None, None
