"""PyTorch's own messages, from 0.2 (THC) to 2.14; `CUDACachingAllocator.cpp`, `CUDAMallocAsyncAllocator.cpp`."""

import re
from dataclasses import replace

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect, with_field
from peaksight.records import Memory, OomMessage


def _clause(before: str, after: str) -> re.Pattern[str]:
    return re.compile(rf"{before}({SIZE}){after}")


# The accelerators of the PyTorch family that copy this message name themselves in its first words.
_BACKENDS = "CUDA|HIP|NPU|XPU|MUSA|MLU|GCU|PPU|DCU|MTIA|SDAA|PrivateUse1"

CLAUSES = (
    ("requested", _clause(r"Tried\s+to\s+allocate\s+", "")),
    ("capacity", _clause("", r"\s+total\s+capacity")),
    ("capacity", _clause(r"total\s+capaci?ty\s+of\s+", "")),
    ("allocated", _clause("", r"\s+already\s+allocated")),
    ("allocated", _clause(r"Of\s+the\s+allocated\s+memory\s+", r"\s+is\s+allocated\s+by")),
    ("active", _clause("", r"\s+current\s+active")),
    ("free", _clause("", r"\s+free\s*;")),
    ("free", _clause(r"of\s+which\s+", r"\s+is\s+free")),
    ("limit", _clause("", r"\s+allowed\s*;")),
    ("process", _clause(r"this\s+process\s+has\s+", r"\s+memory\s+in\s+use")),
    ("private_pools", _clause(r"with\s+", r"\s+allocated\s+in\s+private\s+pools")),
    ("reserved", _clause("", r"\s+reserved\s+in\s+total\s+by")),
    ("idle", _clause("", r"\s+is\s+reserved\s+by\s+PyTorch\s+but")),
    ("idle", _clause("", r"\s+cached\s*\)")),
)


def _refine(message: OomMessage) -> OomMessage:
    """Name the release by its words, and complete allocated + idle = reserved."""
    allocated, idle, reserved = message.allocated_bytes, message.idle_bytes, message.reserved_bytes
    if reserved is None and allocated is not None and idle is not None:
        message = with_field(message, reserved_bytes=allocated + idle)
    if idle is None and allocated is not None and reserved is not None:
        message = with_field(message, idle_bytes=max(reserved - allocated, 0))
    backend = message.text.split()[0]
    framework = f"PyTorch ({backend})" if backend in _BACKENDS.split("|")[1:] else "PyTorch"
    return replace(message, dialect=f"torch-{_release(message.text)}", framework=framework, device=_index(message))


def _release(text: str) -> str:
    if "cached)" in text:
        return "1.0-to-1.3"
    if "total capacity;" in text:
        return "1.4-to-2.0" if "reserved in total" in text else "1.0-to-2.0"
    if "capacty" in text:
        return "2.1"
    if "PYTORCH_ALLOC_CONF" in text:
        return "2.9-or-later"
    if "Including non-PyTorch memory" in text or "total capacity of" in text:
        return "2.2-or-later"
    return "short"


def _index(message: OomMessage) -> str:
    """The device: torch 2.2 prints its number as a character, so that card 0 is a NUL."""
    if message.device or not (odd := re.search(r"GPU ([\x00-\x1f])", message.text)):
        return message.device
    return str(ord(odd[1]))


ALLOCATOR = Dialect(
    name="torch",
    framework="PyTorch",
    memory=Memory.DEVICE,
    start=re.compile(
        rf"(?:{_BACKENDS})\s+out\s+of\s+memory\.\s+Tried(?:\s+to\s+allocate\s+{SIZE}\s+\([A-Z]+ \d+;)?"
        rf"|Tried\s+to\s+allocate\s+{SIZE}\.?\s+\(?[GN]PU \d+|\([GN]PU \d+;\s+(?={SIZE}\s+total\s+capacity)"
    ),
    needles=("out of memory. tried", "tried to allocate", "total capacity"),
    clauses=CLAUSES,
    device=re.compile(r"\b(?:GPU|NPU|XPU|MUSA|MLU|GCU|PPU|DCU|device)[ :]?(\d+)\s*(?:;|has)"),
    processes=re.compile(rf"Process\s+(?P<pid>\d{{1,12}})\s+has\s+(?P<size>{SIZE})\s+memory\s+in\s+use"),
    refine=_refine,
)

ABSURD = Dialect(
    name="torch-more-than-1EB",
    framework="PyTorch",
    memory=Memory.DEVICE,
    start=re.compile(r"(?:CUDA|HIP|NPU|XPU) out of memory\. Tried to allocate more than 1EB"),
    needles=("tried to allocate more than 1eb",),
)

MALLOC_ASYNC = Dialect(
    name="torch-cudaMallocAsync",
    framework="PyTorch",
    memory=Memory.DEVICE,
    start=re.compile(r"Allocation on device\s+\d*\s*would exceed allowed memory|Allocation on device\s*$", re.M),
    needles=("allocation on device",),
    clauses=(
        ("allocated", _clause(r"Currently allocated\s*:\s*", "")),
        ("requested", _clause(r"Requested\s*:\s*", "")),
        ("capacity", _clause(r"Device limit\s*:\s*", "")),
        ("free", _clause(r"Free \(according to CUDA\)\s*:\s*", "")),
        ("limit", _clause(r"PyTorch limit \(set by user-supplied memory fraction\)\s*:\s*", "")),
    ),
    device=re.compile(r"on device\s+(\d+)"),
)

THC = Dialect(
    name="torch-0.4-THC",
    framework="PyTorch",
    memory=Memory.DEVICE,
    start=re.compile(
        r"cuda runtime error \(2\)\s*:\s*out of memory|THCudaCheck FAIL file=\S{1,300} line=\d+ error=2\b"
        r"|\$ Torch: not enough memory: you tried"
    ),
    needles=("cuda runtime error (2)", "thcudacheck fail", "$ torch: not enough memory"),
)

BARE = Dialect(
    name="cuda-error-without-numbers",
    framework="PyTorch",
    memory=Memory.UNKNOWN,
    start=re.compile(
        r"(?:CUDA|HIP) (?:driver )?error: out of memory|CUDA out of memory(?! occurred)(?!\. Tried)"
        r"|cudaErrorMemoryAllocation|hipErrorOutOfMemory|CUDA error 2 \(?out of memory"
        r"|cudaMalloc(?: retry)? failed: out of memory|Error out of memory at line \d+ in file"
        r"|PaddleCheckError: out of memory|cudaSuccess \(2 vs\. 0\)\s+out of memory|CUDA: out of memory"
        r"|CUDA Runtime Error:? (?:\(2\) )?out of memory"
        r"|(?<=RuntimeError: )out of memory"
    ),
    needles=("out of memory", "cudaerrormemoryallocation", "hiperroroutofmemory"),
    clauses=(("requested", _clause(r"allocating\s+", r"\s+on device")),),
)

DIALECTS = (ABSURD, ALLOCATOR, MALLOC_ASYNC, THC, BARE)
