"""The memory format of convolutions: cuDNN's, where torch would ask for that of a device without one."""

from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.kernels.torch_private import suggest_memory_format


def install(patches: Patches) -> None:
    """Answer for cuDNN until `patches` is left."""
    patches.set(torch._C, "_conv_determine_backend_memory_format", _memory_format)


def _memory_format(input: torch.Tensor, weight: torch.Tensor, backend: Any) -> torch.memory_format:
    """Channels last where the input or the weight is, but for float64 (`cudnn_conv_suggest_memory_format`)."""
    if input.dtype == torch.float64:
        return torch.contiguous_format
    formats = suggest_memory_format(input), suggest_memory_format(weight)
    return next((f for f in formats if f is not torch.contiguous_format), torch.contiguous_format)
