"""Sparse gradients and matrices: operators on `sparse_coo` tensors whose fake kernels lose the elements, or fail.

Source: ATen/native/sparse/cuda/SparseCUDATensor.cu. What an H200 took (torch 2.11+cu130, 2026-11-28,
benchmarks/operators).

Limitations:
    Sorting the indices takes a merge sort of thrust besides, some KiB for some hundred rows. A gradient that a second
    backward pass adds to keeps the rows of the first.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries, together
from peaksight.virtual_gpu.tensors.known import Family, attach, known_value
from peaksight.virtual_gpu.torch_private import FakeTensor, current_autograd_node

aten = torch.ops.aten

INDEX_BYTES = 8
SCALAR_BYTES = 4


def fake_kernels() -> dict[str, Callable[..., Any]]:
    """A rule `(mode, run, args, kwargs)` by operator name."""
    return {
        "aten::_coalesce": _coalesce,
        "aten::_to_dense": _to_dense,
        "aten::_sparse_sum.dim": _sum,
        "aten::_sparse_softmax": _softmax,
        "aten::add.Tensor": _add,
        "aten::add_.Tensor": _add_in_place,
        "aten::clone": _clone,
        "aten::_to_copy": _to_copy,
        "aten::detach": _detach,
        "aten::sparse_mask": _sparse_mask,
    }


def steps() -> dict[Any, Callable[..., Any]]:
    """What the card runs in place of an operator on a dense tensor; NotImplemented where that is not known."""
    return {aten._to_sparse.default: to_sparse}


def is_sparse(tensor: Any) -> bool:
    """Whether it has indices and values."""
    return isinstance(tensor, torch.Tensor) and tensor.layout == torch.sparse_coo


def made(like: torch.Tensor, indices: torch.Tensor, values: torch.Tensor, *, is_coalesced: bool) -> torch.Tensor:
    """A tensor of the shape of `like`."""
    return aten._sparse_coo_tensor_with_dims_and_tensors.default(
        like.sparse_dim(), like.dense_dim(), like.shape, indices, values, dtype=values.dtype,
        layout=torch.sparse_coo, device=values.device, is_coalesced=is_coalesced,
    )  # fmt: skip


def _clone(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A copy; the first gradient of a leaf is taken over (autograd/functions/accumulate_grad.h)."""
    if not is_sparse(args[0]):
        return run(args, kwargs)
    with mode:
        parts = args[0]._indices(), args[0]._values()
        if not (_is_accumulating() and all(part.is_contiguous() for part in parts)):
            parts = tuple(part.clone() for part in parts)
        return made(args[0], *parts, is_coalesced=args[0].is_coalesced())


def _to_copy(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A matrix made on the host, moved: its indices are known."""
    tensor = args[0]
    if not is_sparse(tensor) or isinstance(tensor, FakeTensor):
        return run(args, kwargs)
    indices, values = tensor._indices(), tensor._values()
    with mode:
        moved = torch.empty_like(indices, device=kwargs["device"])
        attach(moved, indices, Family())
        copied = torch.empty_like(values, dtype=kwargs.get("dtype"), device=kwargs["device"])
        return made(tensor, moved, copied, is_coalesced=tensor.is_coalesced())


def _detach(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    if not is_sparse(args[0]):
        return run(args, kwargs)
    with mode:
        return made(args[0], args[0]._indices(), args[0]._values(), is_coalesced=args[0].is_coalesced())


def _is_accumulating() -> bool:
    node = current_autograd_node()
    return node is not None and node.name().endswith("AccumulateGrad")


def _coalesce(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """One element for each index; of unknown indices, as many as there were."""
    tensor = args[0]
    with mode:
        indices, values = tensor._indices(), tensor._values()
        count = _num_unique(mode, indices)
        merged = values.new_empty((count, *values.shape[1:]))
        return made(tensor, torch.empty_like(indices)[:, :count], merged, is_coalesced=True)


def _num_unique(mode: Any, indices: torch.Tensor) -> int:
    mode.decides(indices)
    known = known_value(indices)
    return indices.shape[1] if known is None else known.unique(dim=1).shape[1]


def _sparse_mask(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    dense, mask = args[:2]
    with mode:
        values = dense.new_empty(mask._values().shape)
        return made(mask, mask._indices().clone(), values, is_coalesced=mask.is_coalesced())


def _add(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """The sum of two sparse tensors has the elements of both; that of a dense and a sparse one is dense."""
    left, right = args[:2]
    if not is_sparse(right):
        return run(args, kwargs)
    with mode:
        if not is_sparse(left):
            return torch.empty_like(left)
        indices = torch.cat([left._indices(), right._indices()], 1)
        return made(left, indices, torch.cat([left._values(), right._values()]), is_coalesced=False)


def _add_in_place(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    return args[0] if is_sparse(args[1]) and not is_sparse(args[0]) else run(args, kwargs)


def _to_dense(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    if not is_sparse(args[0]):
        return run(args, kwargs)
    with mode:
        return args[0]._values().new_empty(args[0].shape)


def to_sparse(dense: torch.Tensor, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None) -> torch.Tensor:
    """`dense_to_sparse` in ATen/native/TensorConversions.cpp, where every dimension becomes sparse."""
    if dense.layout is not torch.strided or layout not in (None, torch.sparse_coo) or dense_dim:
        return NotImplemented
    indices = dense.nonzero().t().clone()
    values = dense[tuple(indices)].clone()
    return aten._sparse_coo_tensor_with_dims_and_tensors.default(
        dense.dim(), 0, dense.shape, indices, values, dtype=values.dtype,
        layout=torch.sparse_coo, device=values.device, is_coalesced=True,
    )  # fmt: skip


def _sum(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """Over sparse dimensions: the values as they are, at indices without those dimensions, which may repeat."""
    sparse, dims = args[0], {dim % args[0].dim() for dim in args[1]}
    kept = [dim for dim in range(sparse.dim()) if dim not in dims]
    if sparse.dense_dim() or not kept:
        return run(args, kwargs)
    with mode:
        indices, values = sparse._indices()[kept], sparse._values().clone()
        return aten._sparse_coo_tensor_with_dims_and_tensors.default(
            len(kept), 0, [sparse.shape[dim] for dim in kept], indices, values, dtype=values.dtype,
            layout=torch.sparse_coo, device=values.device, is_coalesced=False,
        )  # fmt: skip


def _softmax(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """New values, at a copy of the indices."""
    with mode:
        return made(args[0], args[0]._indices().clone(), torch.empty_like(args[0]._values()), is_coalesced=True)


def coalesce(call: KernelCall) -> Temporaries:
    """The order of the elements and where equal ones begin."""
    size = INDEX_BYTES * call.args[0]._values().shape[0]
    return (size, size, RESULTS, -size, -size)


def sparse_mask(call: KernelCall) -> Temporaries:
    """The values are gathered twice, in the order of flattened indices."""
    values = call.out._values()
    return (SCALAR_BYTES, RESULTS, *together(values.numel() * values.itemsize), -SCALAR_BYTES)


TEMPORARIES: dict[object, Rule] = {aten._coalesce.default: coalesce, aten.sparse_mask.default: sparse_mask}
