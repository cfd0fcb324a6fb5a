"""Functions under `torch.library.custom_op`: the card runs their Python, so that it is run here, too.

What such a function makes besides its results takes memory as it does on the card, and it needs no fake kernel. One
that calls a library in C with the address of a tensor fails here; of that one the fake kernel says what it returns.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from peaksight.errors import PeaksightError
from peaksight.virtual_gpu.kernels.torch_private import python_kernel


@cache
def function_of(op: Any) -> Callable[..., Any] | None:
    """What runs for `op`; it returns NotImplemented where it can't. None for operators that are no such function."""
    kernel = python_kernel(op) if isinstance(op, torch._ops.OpOverload) else None
    return None if kernel is None else partial(_run, kernel)


def _run(kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return kernel(*args, **kwargs)
    except (torch.OutOfMemoryError, PeaksightError):
        raise
    except Exception:
        return NotImplemented
