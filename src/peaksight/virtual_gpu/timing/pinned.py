"""Which tensors the script has in page-locked memory: nothing is pinned here, but copies take another time."""

from typing import Any

import torch

from peaksight.virtual_gpu.timing.work import tensors_in


def pin(batch: Any) -> Any:
    """`batch`, whose tensors are in page-locked memory from now on; as `pin_memory` of torch.utils.data._utils."""
    values = batch.values() if isinstance(batch, dict) else (batch,)
    for tensor in tensors_in(values):
        tensor._peaksight_pinned = True  # type: ignore[attr-defined]
    return batch


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether the script has it in page-locked memory."""
    return getattr(tensor, "_peaksight_pinned", False)
