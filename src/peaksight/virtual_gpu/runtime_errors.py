"""What CUDA's runtime reports, in the words of `c10_cuda_check_implementation` (c10/cuda/CUDAException.cpp)."""

import torch

# Since this release the text no longer says how to find asynchronous errors (pytorch#180427).
SHORT_SINCE = (2, 13)
ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
MEMORY_ALLOCATION = 2
INVALID_DEVICE = 101
TEXTS = {
    MEMORY_ALLOCATION: (
        "out of memory\nSearch for `cudaErrorMemoryAllocation' in "
        "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information."
    ),
    INVALID_DEVICE: "invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?",
}


def runtime_error(code: int, release: tuple[int, int]) -> Exception:
    """The exception for the `cudaError_t` of number `code`, as torch of `release` raises it."""
    error = torch.AcceleratorError(f"CUDA error: {TEXTS[code]}\n{'' if release >= SHORT_SINCE else ASYNCHRONOUS}")
    error.error_code = code  # type: ignore[attr-defined]
    return error
