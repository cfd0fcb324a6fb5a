"""Tells running out of memory by an exception, also where it goes by another name or inside of another one."""

import re
from collections.abc import Iterator

from peaksight.records.capsule import Sign

# The text of what c10::CUDACachingAllocator raises, for those who raise it again as a RuntimeError.
_ALLOCATOR = re.compile(
    r"\bCUDA out of memory\b|\bHIP out of memory\b|Allocation on device .{0,200}would exceed allowed memory"
)
# Where a library of CUDA could not have memory, by its own words for it: (name of the library, its message).
_LIBRARIES = (
    (Sign.CUBLAS, r"CUBLAS_STATUS_ALLOC_FAILED"),
    (Sign.CUDNN, r"CUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_(?:HOST|DEVICE)_ALLOCATION_FAILED)"),
    (Sign.CUSOLVER, r"CUSOLVER_STATUS_ALLOC_FAILED"),
    (Sign.CUSPARSE, r"CUSPARSE_STATUS_(?:ALLOC_FAILED|INSUFFICIENT_RESOURCES)"),
    (Sign.CUFFT, r"CUFFT_ALLOC_FAILED"),
    (Sign.NCCL, r"NCCL[\s\S]{0,2000}?(?:out of memory|failed to (?:cuda)?malloc)"),
    (Sign.DRIVER, r"CUDA (?:driver )?error: (?:out of memory|2\b)|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"),
)
_MOST_LETTERS = 20_000
_MOST_ERRORS = 100


def sign_of(error: BaseException) -> Sign | None:
    """How `error` says so, or one that it was raised from or while handling, or one of its group; None if none does."""
    found = signing(error)
    return found[1] if found else None


def signing(error: BaseException) -> tuple[BaseException, Sign] | None:
    """The one of these that says so, and how."""
    return next(((each, sign) for each in _with_causes(error) if (sign := _sign(each)) is not None), None)


def _sign(error: BaseException) -> Sign | None:
    if _is_allocators(error):
        return Sign.ALLOCATOR
    if not isinstance(error, RuntimeError):
        return None
    text = _text(error)
    if _ALLOCATOR.search(text):
        return Sign.ALLOCATOR
    return next((sign for sign, pattern in _LIBRARIES if re.search(pattern, text, re.IGNORECASE)), None)


def _is_allocators(error: BaseException) -> bool:
    """Whether it is `torch.OutOfMemoryError`, told by name: torch need not be there."""
    return any(
        each.__name__ == "OutOfMemoryError" and each.__module__.startswith("torch") for each in type(error).__mro__
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MOST_LETTERS]
    except Exception:  # somebody's __str__
        return ""


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """`error` and what lies behind it, each once, the nearest first; what an author hid (`from None`) as well."""
    seen: set[int] = set()
    waiting = [error]
    while waiting and len(seen) < _MOST_ERRORS:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        waiting += [other for other in (*inner, each.__cause__, each.__context__) if other is not None]
