"""What C++ does in place on the card, and out of place for a tensor subclass.

Autograd's engine and many of its formulas ask `isTensorSubclassLike` (ATen/TensorSubclassLikeUtils.h) and, told yes,
make a new tensor where they would reuse one that nobody else holds. Fake tensors are told yes; the card is told no.
"""

from pathlib import Path
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import (
    DISPATCH_FILES,
    called_by_engine,
    current_autograd_node,
    is_last_reference,
)

aten = torch.ops.aten

# Of a node: the operators that its formula calls out of place for a subclass, with what it calls for a plain tensor.
# torch/csrc/autograd/FunctionsManual.cpp:
_LOGITS = {aten.sub.Tensor: aten.sub_.Tensor, aten.mul.Tensor: aten.mul_.Tensor}
_BOTH = {aten.logical_and.default: aten.logical_and_.default}
# ATen/native/ReduceOpsUtils.h, ReduceOps.cpp and TensorAdvancedIndexing.cpp:
_SCATTER = {aten.scatter.src: aten.scatter_.src}
_SCATTER_ADD = {aten.scatter_add.default: aten.scatter_add_.default}
FORMULAS: dict[str, dict[Any, Any]] = {
    "Atan2Backward0": {aten.masked_fill.Scalar: aten.masked_fill_.Scalar},
    "BinaryCrossEntropyWithLogitsBackward0": _LOGITS,
    "BinaryCrossEntropyBackward0": {aten.mul.Tensor: aten.mul_.Tensor},
    "ClampBackward0": _BOTH | {aten.logical_or.default: aten.logical_or_.default},
    **dict.fromkeys(("MaxBackward1", "MinBackward1", "MedianBackward0", "NanmedianBackward0"), _BOTH),
    **dict.fromkeys(("MaxBackward0", "MinBackward0", "MedianBackward1", "NanmedianBackward1"), _SCATTER),
    **dict.fromkeys(("ModeBackward0", "KthvalueBackward0", "TopkBackward0"), _SCATTER),
    **dict.fromkeys(("SortBackward0", "SortBackward1"), _SCATTER),
    **dict.fromkeys(("CummaxBackward0", "CumminBackward0", "GatherBackward0"), _SCATTER_ADD),
    "IndexBackward0": {aten.index_put.default: aten._index_put_impl_.default},
    "IndexSelectBackward0": {aten.index_add.default: aten.index_add_.default},
    "MaskedSelectBackward0": {aten.masked_scatter.default: aten.masked_scatter_.default},
    "TakeBackward0": {aten.put.default: aten.put_.default},
    "TraceBackward0": {aten.index_fill.int_Tensor: aten.index_fill_.int_Tensor},
}
_MASKS = (aten.logical_and.default, aten.logical_or.default)
# The same formulas also multiply what they were given, which stays as it is.
_ALSO_OF_INPUTS = frozenset({aten.mul.Tensor})
# Nodes whose formulas add two tensors out of place on the card, too: their sums are not the engine's.
ADDING_FORMULAS = frozenset(
    {
        "Atan2Backward0", "LogcumsumexpBackward0", "MvlgammaBackward0", "StdMeanBackward0", "VarMeanBackward0",
        "CholeskyBackward0", "LinalgCholeskyExBackward0", "LinalgLstsqBackward0", "LinalgLuBackward0",
        "LinalgLuFactorExBackward0", "LinalgLuSolveBackward0", "LinalgPinvBackward0", "LinalgQrBackward0",
        "LinalgSvdBackward0", "LuUnpackBackward0", "TriangularSolveBackward0",
    }
)  # fmt: skip
# The files whose frames lie between an operator's caller and this module.
_DISPATCHING = DISPATCH_FILES | {__file__, str(Path(__file__).with_name("mode.py"))}
OPERATORS = {aten.add.Tensor, *(operator for operators in FORMULAS.values() for operator in operators)}


def in_place_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the card runs for `func`, one of `OPERATORS`: itself, or in a backward pass its in-place form."""
    node = current_autograd_node()
    if node is None:  # which the engine sets for all that it calls
        return func
    name, is_sum = node.name(), func is aten.add.Tensor
    in_place = aten.add_.Tensor if is_sum else FORMULAS.get(name, {}).get(func)
    if in_place is None or not called_by_engine(_DISPATCHING):
        return func
    if is_sum:
        return in_place if name not in ADDING_FORMULAS and _accumulates(args, kwargs) else func
    if not _fits(func, args) or (func in _ALSO_OF_INPUTS and not is_last_reference(args)):
        return func
    return in_place


def _fits(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether the result has the shape of the first argument; where one bound of `clamp` is broadcast, it has not."""
    return func not in _MASKS or torch.broadcast_shapes(args[0].shape, args[1].shape) == args[0].shape


def _accumulates(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether this is the sum of two gradients for one input: torch/csrc/autograd/input_buffer.cpp, `accumulate`."""
    return (
        not kwargs
        and not torch.is_grad_enabled()
        and _alike(*args)
        and is_last_reference(args)
        and aten.is_non_overlapping_and_dense.default(args[0])
    )


def _alike(total: torch.Tensor, gradient: Any) -> bool:
    """Whether both are dense, of one shape and type."""
    if not isinstance(gradient, torch.Tensor) or gradient.layout != torch.strided:
        return False
    return (total.shape, total.dtype, total.layout) == (gradient.shape, gradient.dtype, gradient.layout)
