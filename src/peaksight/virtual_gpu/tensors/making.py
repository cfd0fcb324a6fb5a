"""Parameters in the making: CPU tensors that will become parameters are fake, so that a 7B model costs no host memory.

Everything else on the CPU is real: lengths, masks, labels and tables whose values a script reads. A factory call
inside `Module.__init__` is taken for a parameter when it is uninitialised (`torch.empty`) or large.
"""

import sys
from collections.abc import Sequence
from math import prod
from types import FrameType
from typing import Any

import torch
from torch import nn

from peaksight.virtual_gpu.tensors.value_tables import UNINITIALISED

aten = torch.ops.aten

INITIALISED = {
    aten.zeros.default,
    aten.ones.default,
    aten.full.default,
    aten.randn.default,
    aten.rand.default,
    aten.normal.float_float,
    aten.eye.default,
    aten.eye.m,
}
LARGE_NUMEL = 1 << 16


def is_parameter_in_the_making(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether the result of the CPU factory call `func(*args)` should be fake."""
    if func in UNINITIALISED:  # torch.load makes its tensors from empty(0), copy.deepcopy from new_empty([])
        return _numel(args) > 0 and len(_size(args)) > 0 and _inside_module_init()
    return func in INITIALISED and _numel(args) >= LARGE_NUMEL and _inside_module_init()


def _size(args: tuple[Any, ...]) -> Sequence[Any]:
    """The size among the first arguments; of `eye(n, m)` and `empty_like(tensor)` those arguments."""
    return next((size for size in args[:2] if isinstance(size, (list, tuple))), args[:2])


def _numel(args: tuple[Any, ...]) -> int:
    return prod(size for size in _size(args) if isinstance(size, int))


def _inside_module_init() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if (
            code.co_name == "__init__"
            and code.co_varnames
            and isinstance(frame.f_locals.get(code.co_varnames[0]), nn.Module)
        ):
            return True
        frame = frame.f_back
    return False
