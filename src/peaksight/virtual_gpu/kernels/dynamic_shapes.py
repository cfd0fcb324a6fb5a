"""Operators whose output size depends on values: exact where the values are known, else an upper bound, noted as one.

Beside them, operators of the card for which torch has no fake kernel.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.composites import fused_rms_norm
from peaksight.virtual_gpu.values import known_value

IN_PLACE_WITHOUT_FAKE_KERNEL = (
    "aten::_fused_sgd_",
    "aten::_fused_sgd_.tensor_lr",
    "aten::_fused_adagrad_",
    "aten::_fused_adagrad_.tensor_lr",
)


def shape_rules() -> dict[str, Callable]:
    """A rule `(mode, run, args, kwargs)` by operator name; `run(args, kwargs)` calls the operator's fake kernel."""
    return {
        "aten::nonzero": _nonzero,
        "aten::masked_select": _masked_select,
        "aten::index.Tensor": _index,
        "aten::index_put": _index,
        "aten::index_put_": _index,
        "aten::_index_put_impl_": _index,
        "aten::_unique2": _unique,
        "aten::bincount": _bincount,
        "aten::_pack_padded_sequence": _pack_padded_sequence,
        "aten::_fused_rms_norm": _fused_rms_norm,
        "torchvision::nms": _nms,
        **dict.fromkeys(IN_PLACE_WITHOUT_FAKE_KERNEL, lambda mode, run, args, kwargs: None),
    }


def _num_true(mode: Any, mask: torch.Tensor) -> int:
    value = known_value(mask)
    if value is None:
        mode.made_up_shape()
        return mask.numel()
    return int(torch.count_nonzero(value))


def _empty(like: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return like.new_empty(shape, dtype=dtype)


def _nonzero(mode: Any, run: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    with mode:
        return _empty(args[0], (_num_true(mode, args[0]), args[0].dim()), torch.int64)


def _nms(mode: Any, run: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    """Every box is kept: which ones overlap depends on values."""
    mode.made_up_shape()
    with mode:
        return _empty(args[0], (args[0].shape[0],), torch.int64)


def _masked_select(mode: Any, run: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    with mode:
        return _empty(args[0], (_num_true(mode, args[1]),), args[0].dtype)


def _index(mode: Any, run: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    """A boolean mask over k dimensions is k index vectors of as many elements as it has true ones."""
    tensor, indices, *rest = args
    with mode:
        indices = [index for mask in indices for index in _as_vectors(mode, mask)]
    return run((tensor, indices, *rest), kwargs)


def _as_vectors(mode: Any, index: torch.Tensor | None) -> list[torch.Tensor | None]:
    if index is None or index.dtype not in (torch.bool, torch.uint8):
        return [index]
    count = _num_true(mode, index)
    return [_empty(index, (count,), torch.int64) for _ in range(index.dim())]


def _unique(mode: Any, run: Callable, args: tuple, kwargs: dict) -> tuple[torch.Tensor, ...]:
    tensor = args[0]
    value = known_value(tensor)
    if value is None:
        mode.made_up_shape()
    count = tensor.numel() if value is None else value.unique().numel()
    with mode:
        wants_inverse = len(args) > 2 and args[2]
        wants_counts = len(args) > 3 and args[3]
        return (
            _empty(tensor, (count,), tensor.dtype),
            _empty(tensor, tuple(tensor.shape) if wants_inverse else (0,), torch.int64),
            _empty(tensor, (count,) if wants_counts else (0,), torch.int64),
        )


def _bincount(mode: Any, run: Callable, args: tuple, kwargs: dict) -> torch.Tensor:
    """As many bins as the largest value asks for; of unknown values, no more than `minlength`."""
    tensor, weights, minlength = (*args, None, 0)[:3] if len(args) < 3 else args
    value = known_value(tensor)
    if value is None:
        mode.made_up_shape()
    count = 0 if value is None or not value.numel() else int(value.max()) + 1
    with mode:
        return _empty(tensor, (max(count, minlength),), torch.int64 if weights is None else weights.dtype)


def _pack_padded_sequence(mode: Any, run: Callable, args: tuple, kwargs: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of all sequences, and on the host how many sequences are left at each time."""
    padded, lengths, *_ = args
    batch_sizes = torch.stack([(lengths > time).sum() for time in range(int(lengths.max()))])
    with mode:
        return _empty(padded, (int(lengths.sum()), *padded.shape[2:]), padded.dtype), batch_sizes


def _fused_rms_norm(mode: Any, run: Callable, args: tuple, kwargs: dict) -> tuple[torch.Tensor, torch.Tensor]:
    with mode:
        return fused_rms_norm(*args, **kwargs)
