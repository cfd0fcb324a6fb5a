"""Selective checkpointing by torch's own policies: which operators' results are kept rather than computed again."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

_aten = torch.ops.aten

# Operators whose results are expensive to compute again for the bytes that they take.
GROUPS: dict[str, tuple[Any, ...]] = {
    "matmuls": (_aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default),
    "attention": (
        _aten._scaled_dot_product_flash_attention.default,
        _aten._scaled_dot_product_efficient_attention.default,
        _aten._scaled_dot_product_cudnn_attention.default,
        _aten._scaled_dot_product_flash_attention_for_cpu.default,
        _aten._flash_attention_forward.default,
        _aten._efficient_attention_forward.default,
    ),
    "convolutions": (_aten.convolution.default, _aten.cudnn_convolution.default),
}

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def policy_saving(groups: Iterable[str]) -> Callable[[], Contexts]:
    """Contexts for `checkpoint(context_fn=...)` that keep the results of these `GROUPS`; without any, nothing."""
    kept = frozenset(operator for group in groups for operator in GROUPS[group])
    if not kept:
        return lambda: (nullcontext(), nullcontext())
    return partial(create_selective_checkpoint_contexts, partial(_policy, kept))


def _policy(kept: frozenset[Any], context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if operator in kept else CheckpointPolicy.PREFER_RECOMPUTE
