"""What C++ does in place on the card, and out of place for a tensor subclass.

Autograd's engine and many of its formulas ask `isTensorSubclassLike` (ATen/TensorSubclassLikeUtils.h) and, told yes,
make a new tensor where they would reuse one that nobody else holds. Fake tensors are told yes; the card is told no.
"""

from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import (
    DISPATCH_FILES,
    called_by_engine,
    current_autograd_node,
    is_last_reference,
)

aten = torch.ops.aten

# torch/csrc/autograd/FunctionsManual.cpp: the operator that the formula of a node calls out of place for a subclass.
FORMULAS: dict[tuple[str, Any], Any] = {}
# Nodes whose formulas add two tensors out of place on the card, too: their sums are not the engine's.
ADDING_FORMULAS = frozenset({"Atan2Backward0"})
_OPERATORS = {aten.add.Tensor, *(operator for _, operator in FORMULAS)}


def in_place_of(func: Any, args: tuple, kwargs: dict, mode_file: str) -> Any:
    """What the card runs for `func`, which `mode_file` dispatches: itself, or in a backward pass its in-place form."""
    if func not in _OPERATORS or not called_by_engine(DISPATCH_FILES | {mode_file, __file__}):
        return func
    node = current_autograd_node()
    name = "" if node is None else node.name()
    if func is aten.add.Tensor:
        return aten.add_.Tensor if name not in ADDING_FORMULAS and _accumulates(args, kwargs) else func
    return FORMULAS.get((name, func), func)


def _accumulates(args: tuple, kwargs: dict) -> bool:
    """Whether this is the sum of two gradients for one input: torch/csrc/autograd/input_buffer.cpp, `accumulate`."""
    return (
        not kwargs
        and not torch.is_grad_enabled()
        and _alike(*args)
        and is_last_reference(args)
        and aten.is_non_overlapping_and_dense.default(args[0])
    )


def _alike(total: torch.Tensor, gradient: Any) -> bool:
    return isinstance(gradient, torch.Tensor) and (total.shape, total.dtype) == (gradient.shape, gradient.dtype)
