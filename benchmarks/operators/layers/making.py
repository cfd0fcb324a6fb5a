"""How cases are made: tensors on the card, and variants of a call."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Variant = tuple[str, Callable[[], Callable[[], Any]]]

HALF = (torch.float16, torch.bfloat16)

FLOATS = (torch.float32, *HALF)

BATCH_FIRST = {"batch_first": True}


def randn(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = True, **layout: Any) -> torch.Tensor:
    """Noise on the card."""
    return torch.randn(*shape, device="cuda", dtype=dtype).to(**layout).requires_grad_(grad)


def integers(high: int, *shape: int) -> torch.Tensor:
    """Integers on the card whose values the host knew."""
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(0)).cuda()


def of(signature: str, function: Callable, *make: Callable[[], Any]) -> Variant:
    """A variant that calls `function` with what each of `make` returns."""

    def prepare() -> Callable[[], Any]:
        given = [each() for each in make]
        return lambda: function(*given)

    return signature, prepare


def in_module(signature: str, module: Callable[[], nn.Module], *make: Callable[[], Any], dtype=torch.float32,
              training: bool = True, **kwargs: Any) -> Variant:  # fmt: skip
    """A variant that calls a module on the card."""

    def prepare() -> Callable[[], Any]:
        torch.manual_seed(0)
        on_card = module().to("cuda", dtype).train(training)
        given = [each() for each in make]
        return lambda: on_card(*given, **kwargs)

    return signature, prepare


def short(dtype: torch.dtype) -> str:
    """`float16` for torch.float16."""
    return str(dtype)[6:]
