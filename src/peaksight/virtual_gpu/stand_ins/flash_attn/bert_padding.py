"""Padded batches to packed sequences and back (flash_attn/bert_padding.py)."""

from typing import Any

import torch
from torch.nn.functional import pad


class _Gather(torch.autograd.Function):
    """`rows[indices]` by `gather`, which repeats the indices for every column."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """`rows` are (rows, ...)."""
        ctx.save_for_backward(indices)
        ctx.num_rows = rows.shape[0]
        columns = rows.flatten(1)
        return columns.gather(0, _repeated(indices, columns)).reshape(-1, *rows.shape[1:])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Zeros where nothing was taken."""
        (indices,) = ctx.saved_tensors
        columns = grad.flatten(1)
        whole = columns.new_zeros((ctx.num_rows, columns.shape[1]))
        whole.scatter_(0, _repeated(indices, columns), columns)
        return whole.reshape(ctx.num_rows, *grad.shape[1:]), None


class _Put(torch.autograd.Function):
    """`rows` at `indices` of `num_rows`."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, indices: torch.Tensor, num_rows: int) -> torch.Tensor:
        """Zeros elsewhere."""
        ctx.save_for_backward(indices)
        whole = rows.new_zeros((num_rows, *rows.shape[1:]))
        whole[indices] = rows
        return whole

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Only of what was put."""
        (indices,) = ctx.saved_tensors
        return grad[indices], None, None


def _repeated(indices: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    return indices.unsqueeze(1).expand(-1, columns.shape[1])


index_first_axis = _Gather.apply
index_put_first_axis = _Put.apply


def unpad_input(hidden_states: torch.Tensor, attention_mask: torch.Tensor, unused_mask: Any = None) -> tuple[Any, ...]:
    """The words of (batch, length, ...) that the mask has: they, their places, starts, the longest, lengths."""
    whole = attention_mask if unused_mask is None else attention_mask + unused_mask
    lengths = whole.sum(dim=-1, dtype=torch.int32)
    used = attention_mask.sum(dim=-1, dtype=torch.int32)
    indices = torch.nonzero(whole.flatten(), as_tuple=False).flatten()
    longest = lengths.max().item()
    starts = pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
    return index_first_axis(hidden_states.flatten(0, 1), indices), indices, starts, longest, used


def pad_input(hidden_states: torch.Tensor, indices: torch.Tensor, batch: int, seqlen: int) -> torch.Tensor:
    """(words, ...) at their places of (batch, seqlen, ...), zeros elsewhere."""
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))
