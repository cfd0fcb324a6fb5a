"""What the programs call that Inductor writes: allocations on the virtual GPU, and kernels that do nothing."""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part, program_functions
from peaksight.virtual_gpu.tensors.devices import for_cpp
from peaksight.virtual_gpu.tensors.values import forget

# Triton's kernels read 16 bytes at once: `ALIGNMENT` of torch/_inductor/utils.py.
_ALIGNMENT_BYTES = 16


def install(patches: Patches) -> None:
    """Serve written programs until `patches` is left."""
    functions = program_functions()
    patches.set(functions, "_empty_strided_cuda", _empty_strided)
    patches.set(functions, "_reinterpret_tensor", _reinterpret)
    if hasattr(functions, "copy_if_misaligned"):  # from torch 2.14 on
        patches.set(functions, "copy_if_misaligned", _copy_if_misaligned)
    compiling = part("torch._inductor.async_compile").AsyncCompile
    patches.set(compiling, "triton", lambda self, name, source, device_str="cuda": Kernel())
    for name in ("cpp", "cpp_pybinding"):
        patches.set(compiling, name, _refuse_host_code)


class Kernel:
    """A kernel of the program: nobody knows what it writes into its arguments."""

    def run(self, *args: Any, **kwargs: Any) -> None:
        """Launch it."""
        forget([arg for arg in args if isinstance(arg, torch.Tensor)])


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
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
