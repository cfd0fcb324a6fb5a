"""What the functions share: the kernels, forward and backward.

Sources: mha_fwd, mha_varlen_fwd, mha_bwd and mha_varlen_bwd of csrc/flash_attn/flash_api.cpp. PyTorch's copy of them
(`aten._flash_attention_forward`) takes the same memory, and its rules were compared with cards.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad

aten = torch.ops.aten
HALF = (torch.float16, torch.bfloat16)
ROWS = 128


class Sequences(NamedTuple):
    """Where packed sequences begin, int32 of (sequences + 1), and how long the longest are."""

    starts_q: torch.Tensor
    starts_k: torch.Tensor
    longest_q: int
    longest_k: int


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float,
    causal: bool,
    sequences: Sequences | None,
    return_attn_probs: bool,
) -> Any:
    """The output; with it the statistics and, under dropout, the probabilities."""
    head_size = q.shape[-1]
    q, k, v = (_ready(each) for each in (q, k, v))
    out, statistics, _, _, probabilities = _forward(q, k, v, dropout_p, causal, sequences, return_attn_probs)
    out = out[..., :head_size]
    return (out, statistics, probabilities) if return_attn_probs else out


def packed_attention(
    packed: tuple[torch.Tensor, ...],
    dropout_p: float,
    causal: bool,
    sequences: Sequences | None,
    return_attn_probs: bool,
) -> Any:
    """The same of `qkv`, or of `q` and `kv`, whose gradients are as packed as they are."""
    return _Packed.apply(dropout_p, causal, sequences, return_attn_probs, *packed)


class _Packed(torch.autograd.Function):
    """The backward writes all gradients of one tensor into one, so that nothing is joined afterwards."""

    @staticmethod
    def forward(ctx: Any, dropout_p: float, causal: bool, sequences: Any, return_probs: bool, *packed: Any) -> Any:
        """Save what the backward needs; padded heads are copies."""
        head_size = packed[0].shape[-1]
        q, k, v = (_ready(each.detach()) for each in _apart(packed))
        out, statistics, random_state, _, probabilities = _forward(q, k, v, dropout_p, causal, sequences, return_probs)
        ctx.save_for_backward(q, k, v, out, statistics, random_state)
        ctx.num_sequences = None if sequences is None else sequences.starts_q.shape[0] - 1
        ctx.parts = tuple(each.shape[-3] for each in packed) if len(packed) == 1 else (1, 2)
        out = out[..., :head_size]
        return (out, statistics, probabilities) if return_probs else out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, *others: Any) -> Any:
        """The gradients, and beside them what the kernel adds up in single precision."""
        q, k = ctx.saved_tensors[:2]
        head_size = grad.shape[-1]
        grads = [q.new_empty(q.shape)] if len(ctx.parts) == 2 else []
        grads.append(k.new_empty((*k.shape[:-2], ctx.parts[-1], *k.shape[-2:])))
        grad = _ready(grad)
        _backward(q, k, ctx.num_sequences)
        return None, None, None, None, *(each[..., :head_size] for each in grads)


def _apart(packed: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """Queries, keys and values, as views."""
    *before, last = packed
    return *before, *last.unbind(-3)


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """As the kernel takes it: heads of a multiple of 8, one value beside the other."""
    padding = -tensor.shape[-1] % 8
    if padding:
        return pad(tensor, [0, padding])
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float, causal: bool, sequences: Any, probs: bool
) -> Any:
    _check(q, k)
    starts = (None, None, q.shape[1], k.shape[1]) if sequences is None else sequences
    return aten._flash_attention_forward(q, k, v, *starts, dropout_p, causal, probs and dropout_p > 0)


def _check(q: torch.Tensor, k: torch.Tensor) -> None:
    """What the kernels refuse, in their words."""
    if q.dtype not in HALF:
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if torch.cuda.get_device_capability(q.device) < (8, 0):
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    if q.shape[-1] > 256:
        raise RuntimeError("FlashAttention forward only supports head dimension at most 256")
    if q.shape[-2] % k.shape[-2]:
        raise RuntimeError("Number of heads in key/value must divide number of heads in query")


def _backward(q: torch.Tensor, k: torch.Tensor, num_sequences: int | None) -> None:
    """Row sums and the gradient of the queries in single precision; of shared keys one gradient a query head."""
    *words, heads, head_size = q.shape
    rows = words[0] + ROWS * num_sequences if num_sequences is not None else words[0] * (-(-words[1] // ROWS) * ROWS)
    multiple = 32 if head_size <= 128 else 64
    statistics = q.new_empty((heads, rows), dtype=torch.float32)
    sums = q.new_empty((rows, heads, -(-head_size // multiple) * multiple), dtype=torch.float32)
    shared = [k.new_empty((*k.shape[:-2], heads, head_size)) for _ in range(2 if heads != k.shape[-2] else 0)]
    del statistics, sums, shared
