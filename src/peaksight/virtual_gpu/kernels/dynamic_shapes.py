"""Operators whose output size depends on values: exact where they are known, else an upper bound, noted as one."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from peaksight.virtual_gpu.tensors.distinct_values import most_distinct
from peaksight.virtual_gpu.tensors.even_shares import shares
from peaksight.virtual_gpu.tensors.known import Family, attach, known_value
from peaksight.virtual_gpu.tensors.true_counts import most_true

MAX_PLACES = 4096


def shape_rules() -> dict[str, Callable[..., Any]]:
    """A rule `(mode, run, args, kwargs)` by operator name; `run(args, kwargs)` calls the operator's fake kernel."""
    return {
        "aten::nonzero": _nonzero,
        "aten::masked_select": _masked_select,
        "aten::index.Tensor": _index_on_one_device,
        "aten::index_put": _index,
        "aten::index_put_": _index_put,
        "aten::_index_put_impl_": lambda mode, run, args, kwargs: args[0],
        "aten::_unique": lambda *call: _unique(*call)[:2],
        "aten::_unique2": _unique,
        "aten::unique_consecutive": _unique_consecutive,
        "aten::unique_dim": _unique_dim,
        "aten::repeat_interleave.Tensor": _repeat_interleave,
        "aten::_ctc_loss": _ctc_loss,
        "aten::_ctc_loss.Tensor": _ctc_loss,
        "aten::bincount": _bincount,
        "aten::histc": _histc,
        "aten::_pack_padded_sequence": _pack_padded_sequence,
        "torchvision::nms": _nms,
    }


def _num_true(mode: Any, mask: torch.Tensor) -> int:
    mode.decides(mask)
    return most_true(mask)


def _empty(mode: Any, like: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    with mode:
        return like.new_empty(shape, dtype=dtype)


def _nonzero(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """Where a small mask is taken to be true everywhere, the places are all: a loop over experts comes to each."""
    (mask,) = args
    count = _num_true(mode, mask)
    places = _empty(mode, mask, (count, mask.dim()), torch.int64)
    if known_value(mask) is None and count == mask.numel() <= MAX_PLACES:
        attach(places, torch.ones(mask.shape).nonzero(), Family())
    return places


def _nms(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """Every box is kept: which ones overlap depends on values."""
    mode.made_up_shape()
    return _empty(mode, args[0], (args[0].shape[0],), torch.int64)


def _masked_select(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    tensor, mask = args[:2]
    num_items = torch.broadcast_shapes(tensor.shape, mask.shape).numel()
    return _empty(mode, tensor, (_num_true(mode, mask) * num_items // max(1, mask.numel()),), tensor.dtype)


def _index(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A boolean mask over k dimensions is k index vectors of as many elements as it has true ones."""
    tensor, indices, *rest = args
    indices = [index for mask in indices for index in _as_vectors(mode, mask)]
    return run((tensor, indices, *rest), kwargs)


def _index_on_one_device(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    """`check_indices_on_cpu_or_selfdevice` in ATen/native/TensorAdvancedIndexing.cpp."""
    device = args[0].device
    if any(index is not None and index.device.type != "cpu" and index.device != device for index in args[1]):
        message = "indices should be either on cpu or on the same device as the indexed tensor"
        raise RuntimeError(f"{message} ({device})")
    return _index(mode, run, args, kwargs)


def _index_put(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A number is written where masks are true, however many elements that are."""
    tensor, indices, values, *_ = args
    is_filled = values.dim() == 0 and all(each is None or each.dtype == torch.bool for each in indices)
    return tensor if is_filled else _index(mode, run, args, kwargs)


def _as_vectors(mode: Any, index: torch.Tensor | None) -> list[torch.Tensor | None]:
    if index is None or index.dtype not in (torch.bool, torch.uint8):
        return [index]
    count = _num_true(mode, index)
    return [_empty(mode, index, (count,), torch.int64) for _ in range(index.dim())]


def _unique(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    tensor, _, wants_inverse, wants_counts = _padded(args, 4)
    room = min(2, tensor.numel()) if tensor.dtype == torch.bool else tensor.numel()
    count = _count(mode, most_distinct(tensor), tensor, torch.Tensor.unique)
    return _unique_of_all(mode, tensor, (count, room), wants_inverse, wants_counts)


def _unique_consecutive(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    tensor, wants_inverse, wants_counts = _padded(args, 3)
    count = _count(mode, tensor.numel(), tensor, torch.unique_consecutive)
    return _unique_of_all(mode, tensor, (count, tensor.numel()), wants_inverse, wants_counts)


def _unique_of_all(
    mode: Any, tensor: torch.Tensor, sizes: tuple[int, int], wants_inverse: bool, wants_counts: bool
) -> tuple[torch.Tensor, ...]:
    """The card makes room for as many values and counts as there may be, and keeps it."""
    count, room = sizes
    outputs = _unique_outputs(mode, tensor, (room,), tuple(tensor.shape), wants_inverse, wants_counts)
    return outputs[0][:count], outputs[1], outputs[2][:count]


def _unique_dim(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    tensor, dim, _, wants_inverse, wants_counts = _padded(args, 5)
    size = tensor.shape[dim]
    count = _count(mode, size, tensor, lambda value: value.unique(dim=dim).transpose(0, dim))
    shape = (*tensor.shape[:dim], count, *tensor.shape[dim:][1:])
    return _unique_outputs(mode, tensor, shape, (size,), wants_inverse, wants_counts, count)


def _padded(args: tuple[Any, ...], length: int) -> tuple[Any, ...]:
    """`args` with the flags that were left out."""
    return (*args, *[False] * (length - len(args)))


def _count(mode: Any, bound: int, tensor: torch.Tensor, unique: Callable[..., Any]) -> int:
    """How many rows `unique` leaves of `tensor`, all of them when its values are unknown."""
    mode.decides(tensor)
    value = known_value(tensor)
    return bound if value is None else len(unique(value))


def _unique_outputs(
    mode: Any, tensor: torch.Tensor, shape: tuple[int, ...], inverse_shape: tuple[int, ...], wants_inverse: bool,
    wants_counts: bool, count: int | None = None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    counts_shape = (shape[0] if count is None else count,)
    return (
        _empty(mode, tensor, shape, tensor.dtype),
        _empty(mode, tensor, inverse_shape if wants_inverse else (0,), torch.int64),
        _empty(mode, tensor, counts_shape if wants_counts else (0,), torch.int64),
    )


def _repeat_interleave(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> torch.Tensor:
    """An index for each repetition; of unknown ones, one for each element."""
    repeats, output_size = args[0], kwargs.get("output_size")
    value = known_value(repeats)
    if output_size is None:
        mode.decides(repeats)
    known = repeats.numel() if value is None else int(value.sum())
    return _empty(mode, repeats, (known if output_size is None else output_size,), torch.int64)


def _ctc_loss(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """A loss for each sample, and the log-probabilities of every state: two for each label, and one."""
    log_probs, targets, _, lengths, *_ = args
    value = known_value(lengths) if isinstance(lengths, torch.Tensor) else torch.tensor(lengths)
    if isinstance(lengths, torch.Tensor):
        mode.decides(lengths)
    longest = targets.shape[-1] if value is None else int(value.max())
    time, batch = log_probs.shape[:2]
    losses, states = (batch,), (batch, time, 2 * longest + 1)
    return _empty(mode, log_probs, losses, log_probs.dtype), _empty(mode, log_probs, states, log_probs.dtype)


def _bincount(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """As many bins as the largest value asks for; of unknown values, no more than `minlength`, or even shares."""
    defaults: tuple[Any, ...] = (None, 0)
    tensor, weights, minlength = args + defaults[len(args) - 1 :]
    value = known_value(tensor)
    if value is None:
        mode.made_up_shape()
        if weights is None and (even := shares(tensor)) is not None:
            counts = _empty(mode, tensor, (max(len(even), minlength),), torch.int64)
            attach(counts, F.pad(even, (0, len(counts) - len(even))), Family())
            return counts
    count = 0 if value is None or not value.numel() else int(value.max()) + 1
    return _empty(mode, tensor, (max(count, minlength),), torch.int64 if weights is None else weights.dtype)


def _histc(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """A bin for each choice has an even share, as the layers of experts count their rows."""
    defaults: tuple[Any, ...] = (None, 100, 0, 0)
    tensor, num_bins, lowest, highest = args + defaults[len(args) :]
    counts, even = run(args, kwargs), shares(tensor)
    if even is not None and (lowest, highest) == (0, num_bins - 1) and len(even) >= num_bins:
        mode.made_up_shape()
        attach(counts, even[:num_bins].to(counts.dtype), Family())
    return counts


def _pack_padded_sequence(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows of all sequences, and on the host how many sequences are left at each time."""
    padded, lengths, *_ = args
    batch_sizes = torch.stack([(lengths > time).sum() for time in range(int(lengths.max()))])
    return _empty(mode, padded, (int(lengths.sum()), *padded.shape[2:]), padded.dtype), batch_sizes
