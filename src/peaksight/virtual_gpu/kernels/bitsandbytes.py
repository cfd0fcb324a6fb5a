"""bitsandbytes: its kernels for CUDA are Python around a library in C. The Python runs, the library does nothing.

So 4-bit weights, their dequantised copies, matrices of 8 bits and the states of its optimizers take what they take on
the card: bitsandbytes/backends/cuda/ops.py makes every tensor that the library fills.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from math import prod
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.late_imports import Change, change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.kernels.torch_private import cuda_kernels
from peaksight.virtual_gpu.tensors.mapped import untouched

Note = Callable[..., None]  # Approximations.note
KERNELS = "bitsandbytes.backends.cuda.ops"


class _Function:
    """One of the library; ctypes lets its types be set."""

    def __call__(self, *args: Any) -> int:
        return 0


class _Library:
    """The library in C, without the card that it runs on."""

    compiled_with_cuda = True

    def __getattr__(self, name: str) -> _Function:
        return _Function()


def install(patches: Patches, rules: dict[Any, Callable[..., Any]], note: Note) -> None:
    """Run without the library until `patches` is left; `rules` gets what runs for each of its operators."""

    def without_library(module: ModuleType) -> None:
        patches.set_wherever_imported("lib", _Library(), of=module, also_as="lib")

    def without_paging(module: ModuleType) -> None:
        patches.set(module, "get_paged", partial(_get_paged, note))

    def with_kernels(module: ModuleType) -> None:
        import_module(KERNELS)  # which it leaves out where there was no card

    def by_python(module: ModuleType) -> None:
        kernels = cuda_kernels("bitsandbytes")
        quantise = torch.ops.bitsandbytes.int8_vectorwise_quant.default
        rules.update({**kernels, quantise: partial(_without_outliers, kernels[quantise], note)})

    changes: dict[str, Change] = {
        "bitsandbytes.cextension": without_library,
        "bitsandbytes.functional": without_paging,
        KERNELS: by_python,
        "bitsandbytes": with_kernels,
    }
    change_modules(patches, changes)


def _get_paged(note: Note, *shape: int, dtype: torch.dtype = torch.float32, device: Any = None) -> Any:
    """Memory that CUDA moves between host and card (cudaMallocManaged), which is none of PyTorch's."""
    note("paged", num_bytes=prod(shape) * dtype.itemsize)
    paged: Any = untouched(shape, dtype)
    paged.is_paged, paged.page_deviceid = True, 0
    return paged


def _without_outliers(kernel: Callable[..., Any], note: Note, rows: torch.Tensor, threshold: float = 0.0) -> Any:
    """Which columns hold a value of at least `threshold`, and stay in half precision, only values tell: here none."""
    quantised, row_stats, columns = kernel(rows)
    if threshold:
        note("outliers")
        (rows.abs() >= threshold).any()
        columns = torch.empty(0, device=rows.device, dtype=torch.int64)
    return quantised, row_stats, columns
