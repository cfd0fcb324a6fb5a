"""Kernels written in Triton, as those of liger_kernel: they write into tensors that exist, and allocate none."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.tensors.known import forget

# `CudaDriver.get_empty_cache_for_benchmark` in triton/backends/nvidia/driver.py.
_BENCHMARK_CACHE_BYTES = 256 << 20


def install(patches: Patches, note: Callable[[str], None]) -> None:
    """Have launches do nothing until `patches` is left; `note(name)` each, with the name of the kernel."""

    def launch_nothing(module: ModuleType) -> None:
        patches.set(module.JITFunction, "run", _launch(note))

    def time_nothing(module: ModuleType) -> None:
        patches.set(module.Autotuner, "do_bench", property(lambda tuner: _benchmark))

    change_modules(patches, {"triton.runtime.jit": launch_nothing, "triton.runtime.autotuner": time_nothing})


def _launch(note: Callable[[str], None]) -> Callable[..., None]:
    """`JITFunction.run`: nobody knows what the kernel writes into its arguments."""

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        note(kernel.fn.__name__)
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                forget(leaf)

    return run


def _benchmark(kernel_call: Callable[[], None], **options: Any) -> list[float]:
    """`triton.testing.do_bench`, by which autotuning picks a configuration: here the first, but its memory is taken."""
    torch.empty(_BENCHMARK_CACHE_BYTES // 4, dtype=torch.int, device="cuda")
    kernel_call()
    return [0.0, 0.0, 0.0]
