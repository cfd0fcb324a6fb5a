"""Which exceptions say that memory ran out."""

import pytest

from peaksight.live.disguises import sign_of
from peaksight.records.capsule import Sign


class OutOfMemoryError(RuntimeError):
    __module__ = "torch"


class OfALibrary(OutOfMemoryError):
    __module__ = "some.library"


@pytest.mark.parametrize(
    ("error", "sign"),
    [
        (OutOfMemoryError("anything"), Sign.ALLOCATOR),
        (OfALibrary("anything"), Sign.ALLOCATOR),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), Sign.ALLOCATOR),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"), Sign.DRIVER),
        (RuntimeError("CUDA driver error: out of memory"), Sign.DRIVER),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), Sign.CUBLAS),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), Sign.CUDNN),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), Sign.CUDNN),
        (RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling"), Sign.CUSOLVER),
        (RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"), Sign.CUFFT),
        (
            RuntimeError(
                "NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error, NCCL version 2.27.5\n"
                "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"
            ),
            Sign.NCCL,
        ),
    ],
)
def test_a_sign(error, sign):
    """By the type where there is one, else by the library's own words."""
    assert sign is sign_of(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("CUBLAS_STATUS_NOT_INITIALIZED"),
        RuntimeError("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"),
        RuntimeError("NCCL error: unhandled system error"),
        ValueError("CUDA out of memory is what this text is about"),
        MemoryError(),
        KeyboardInterrupt(),
    ],
)
def test_no_sign(error):
    """What is about something else, or about the host."""
    assert sign_of(error) is None


def test_inside_of_another():
    """Raised from it, while handling it, even hidden, and in a group; a circle ends."""
    inner = OutOfMemoryError("anything")
    cause, context, hidden = ValueError("a"), KeyError("b"), TypeError("c")
    cause.__cause__ = inner
    context.__context__ = cause
    hidden.__context__, hidden.__suppress_context__ = context, True
    circle = ValueError("d")
    circle.__context__ = circle

    assert [Sign.ALLOCATOR] * 4 == [sign_of(e) for e in (cause, context, hidden, ExceptionGroup("e", [circle, hidden]))]
    assert sign_of(circle) is None


def test_a_text_that_cannot_be_had():
    """An exception of somebody whose own text fails."""

    class Broken(RuntimeError):
        def __str__(self):
            raise ValueError

    assert sign_of(Broken()) is None
