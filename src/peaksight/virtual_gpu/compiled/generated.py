"""What the programs call that Inductor writes: allocations on the virtual GPU, and kernels that do nothing."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part, program_functions
from peaksight.virtual_gpu.tensors.devices import for_cpp
from peaksight.virtual_gpu.tensors.known import forget

# Triton's kernels read 16 bytes at once: `ALIGNMENT` of torch/_inductor/utils.py.
_ALIGNMENT_BYTES = 16


def install(patches: Patches, begin: Callable[[], None]) -> None:
    """Serve written programs until `patches` is left; `begin()` comes before each of their allocations."""

    def allocate(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        begin()
        return empty_strided(size, stride, dtype)

    functions = program_functions()
    patches.set(functions, "_empty_strided_cuda", allocate)
    patches.set(functions, "_reinterpret_tensor", _reinterpret)
    if hasattr(functions, "copy_if_misaligned"):  # from torch 2.14 on
        patches.set(functions, "copy_if_misaligned", _copy_if_misaligned)
    compiling = part("torch._inductor.async_compile").AsyncCompile
    patches.set(compiling, "triton", lambda self, name, source, device_str="cuda": Kernel(name, source))
    for name in ("cpp", "cpp_pybinding"):
        patches.set(compiling, name, _refuse_host_code)


class Kernel:
    """A kernel of the program: nobody knows what it writes into its arguments.

    At its first launch those of its configurations that seem best are timed, if there are several, as
    `CachingAutotuner.bench` of torch/_inductor/runtime/triton_heuristics.py does.
    """

    def __init__(self, name: str, source: str) -> None:
        """The kernel `name` of the module written as `source`."""
        tuner = getattr(part("torch._inductor.codecache").PyCodeCache.load(source), name)
        self._trials = len(tuner.configs) if len(tuner.configs) > 1 else 0
        self._written = [name in tuner.mutated_arg_names for name in tuner.fn.arg_names]
        self._saves_memory = tuner.optimize_mem

    def run(self, *args: Any, **kwargs: Any) -> None:
        """Launch it."""
        trials, self._trials = self._trials, 0
        for _ in range(trials):
            self._time(args)
        forget([arg for arg in args if isinstance(arg, torch.Tensor)])

    def _time(self, args: Sequence[Any]) -> None:
        """Launches on copies of what it writes in place; all but the first with a buffer that flushes the cache."""
        copied = self._copied(args)
        _copy(copied)
        flush = cache_flush()
        _copy(copied)
        del flush

    def _copied(self, args: Sequence[Any]) -> list[torch.Tensor]:
        """What is copied on the card: where nothing is kept for a backward pass, no more than would raise the peak.

        The others are kept on the host meanwhile; `copy_args_to_cpu_if_needed` of the same file.
        """
        written = [arg for arg, is_written in zip(args, self._written, strict=False) if is_written]
        if not self._saves_memory:
            return written
        budget_bytes = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        copied = []
        for arg in written:
            if (nbytes := _span_bytes(arg)) <= budget_bytes:
                budget_bytes -= nbytes
                copied.append(arg)
        return copied


def _copy(tensors: Sequence[torch.Tensor]) -> None:
    clone = part("torch._inductor.utils").clone_preserve_strides
    copies = [clone(tensor) for tensor in tensors]
    del copies


def _span_bytes(tensor: torch.Tensor) -> int:
    """From the first element of `tensor` to its last, in bytes."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def cache_flush() -> torch.Tensor:
    """What is written between two launches that are timed."""
    cache_bytes = torch.cuda.get_device_properties().L2_cache_size
    return torch.empty(cache_bytes // 4, dtype=torch.int, device=for_cpp("cuda"))


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """An allocation on the card."""
    return torch.empty_strided(size, stride, dtype=dtype, device=for_cpp("cuda"))


def _reinterpret(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> torch.Tensor:
    with torch.no_grad():
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def _copy_if_misaligned(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.data_ptr() % _ALIGNMENT_BYTES:
        return part("torch._inductor.utils").clone_preserve_strides(tensor)
    return tensor


def _refuse_host_code(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("code for the host")
