"""Operators whose hidden memory is known: by a rule, by measurement, or because they have no kernel that needs any.

`measured_operators.txt` names the operators that ran in cases of benchmarks/operators in which the virtual card took
the same blocks as a real one; `make operators` writes it.
"""

from functools import cache
from pathlib import Path
from typing import Any

import torch

MEASURED = frozenset(Path(__file__).with_name("measured_operators.txt").read_text().split())
# One thread an element, or no kernel at all.
HARMLESS_TAGS = (torch.Tag.pointwise, torch.Tag.inplace_view)
# Operators of torch.distributed: the kernels of others, and those of NCCL. Measured runs of two ranks call them.
COMMUNICATION = ("fsdp::", "_c10d_functional::", "c10d::")


def family(func: Any) -> str:
    """`aten::add` for every overload of add, add_ and add.out: they share their kernels."""
    return func.name().partition(".")[0].removesuffix("_")


@cache
def is_known(func: Any) -> bool:
    """Whether the hidden memory of `func` was measured or cannot be."""
    if not isinstance(func, torch._ops.OpOverload):
        return False
    if func.is_view or any(tag in func.tags for tag in HARMLESS_TAGS):
        return True
    return family(func) in MEASURED or func.name().startswith(COMMUNICATION)
