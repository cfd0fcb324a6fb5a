"""CUDA's libraries, whose errors are often out of memory in disguise."""

import re

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect
from peaksight.records import Memory

CUBLAS = Dialect(
    name="cublas",
    framework="cuBLAS",
    memory=Memory.DEVICE,
    start=re.compile(
        r"CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)|HIPBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
        r"|cublas runtime error : (?:library not initialized|resource allocation failed)"
        r"|resource allocation failed at .{0,120}THCGeneral|[Ff]ailed to create cublas handle"
        r"|CUSOLVER_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)"
        r"|cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate"
        r"|CURAND_STATUS_(?:ALLOCATION|INITIALIZATION)_FAILED|[Cc]reate (?:cublas|cudnn|curand) handle failed"
        r"|CUSPARSE_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INSUFFICIENT_RESOURCES)|CUFFT_ALLOC_FAILED"
    ),
    needles=("cublas", "curand", "cusolver", "cusparse", "cufft", "thcgeneral", "hipblas"),
)

CUDNN = Dialect(
    name="cudnn",
    framework="cuDNN",
    memory=Memory.DEVICE,
    start=re.compile(
        r"CUDNN_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|INTERNAL_ERROR(?:_DEVICE_ALLOCATION_FAILED)?)"
        r"|Unable to find a valid cuDNN algorithm to run convolution|(?:FIND"
        r"|GET) was unable to find an engine to execute"
        r"|cuDNN failed to initialize|[Cc]ould not create cudnn handle|MIOPEN.{0,60}(?:OutOfMemory"
        r"|miopenStatusAllocFailed)"
    ),
    needles=("cudnn", "unable to find an engine", "miopen"),
)

NCCL = Dialect(
    name="nccl",
    framework="NCCL",
    memory=Memory.DEVICE,
    start=re.compile(
        r"Cuda failure (?:\d+ )?'out of memory'|Failed to CUDA (?:host )?(?:calloc|malloc)(?: async)? \d+ bytes"
        r"|NCCL.{0,40}unhandled cuda error(?=[\s\S]{0,400}out of memory)|RCCL WARN .{0,60}out of memory"
        r"|Failed to allocate .{0,40}(?:NCCL|nccl)|Cuda failure (?:\d+ )?'memory allocation'"
    ),
    needles=("cuda failure", "failed to cuda", "unhandled cuda error", "rccl warn"),
    clauses=(("requested", re.compile(r"Failed to CUDA (?:host )?(?:calloc|malloc)(?: async)? (\d+ bytes)")),),
)

NCCL_UNCLEAR = Dialect(
    name="nccl-unclear",
    framework="NCCL",
    memory=Memory.UNKNOWN,
    start=re.compile(
        r"NCCL error in: .{0,200}?(?:unhandled cuda error|internal error|unhandled system error)"
        r"|ncclUnhandledCudaError|ncclInternalError"
    ),
    needles=("nccl error in", "ncclunhandledcudaerror", "ncclinternalerror"),
    is_warning=True,
)

NCCL_SHARED = Dialect(
    name="nccl-shared-memory",
    framework="NCCL",
    memory=Memory.SHARED,
    start=re.compile(r"(?:Call to posix_fallocate failed|Error while creating shared memory segment)"),
    needles=("posix_fallocate failed", "creating shared memory segment"),
    clauses=(("requested", re.compile(rf"size\s+(\d+)(?!\d)|({SIZE})")),),
)

DIALECTS = (CUBLAS, CUDNN, NCCL, NCCL_SHARED, NCCL_UNCLEAR)
