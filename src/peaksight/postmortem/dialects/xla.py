"""XLA: the rematerialisation warning, the BFC allocator, buffer assignment, and TPU's report."""

import re
from dataclasses import replace

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect, with_field
from peaksight.records import Memory, OomMessage


def _named(words: str) -> re.Pattern[str]:
    return re.compile(rf"{words}:?\s*({SIZE})")


def _exact(words: str) -> re.Pattern[str]:
    """A size that is followed by the same in bytes, of which the bytes are taken."""
    return re.compile(rf"{words}\s*(?:{SIZE})\s*\((\d+ bytes)\)")


REMATERIALIZATION = Dialect(
    name="xla-rematerialization",
    framework="XLA",
    memory=Memory.DEVICE,
    start=re.compile(r"Can't reduce memory use below"),
    needles=("can't reduce memory use below",),
    clauses=(
        ("limit", _exact("below")),
        ("needed", _exact("only reduced to")),
        ("originally", _exact("down from")),
    ),
    is_warning=True,
)

BFC_NAMES = (
    ("requested", re.compile(r"\(rounded to (\d+)\)")),
    ("requested", re.compile(r"trying to allocate\s+(\d+\s*bytes)")),
    ("requested", re.compile(rf"trying to allocate\s+({SIZE})(?!\s*\(rounded)")),
    ("limit", re.compile(r"\bLimit:\s+(\d+)\b(?!\.)")),
    ("in_use", re.compile(r"\bInUse:\s+(\d+)\b(?!\.)")),
    ("max_in_use", re.compile(r"\bMaxInUse:\s+(\d+)\b(?!\.)")),
    ("max_alloc_size", re.compile(r"\bMaxAllocSize:\s+(\d+)\b(?!\.)")),
    ("bfc_reserved", re.compile(r"\bReserved:\s+(\d+)\b(?!\.)")),
    ("largest_free_block", re.compile(r"\bLargestFreeBlock:\s+(\d+)\b(?!\.)")),
    ("in_use_chunks", re.compile(rf"Sum Total of in-use chunks:\s*({SIZE})")),
)


def _prefer_printed(message: OomMessage) -> OomMessage:
    """`85.87GiB (rounded to 92198188544)`: keep the printed words beside the exact bytes; some are no failures."""
    message = replace(message, is_warning="this is not a failure" in message.text)
    printed = re.search(rf"trying to allocate\s+({SIZE})", message.text)
    if not printed:
        return message
    figures = tuple(
        replace(figure, printed=f"{printed[1].strip()} ({figure.printed} bytes)")
        if "B" not in figure.printed
        else figure
        for figure in message.figures
        if figure.name == "requested"
    )
    others = tuple(figure for figure in message.figures if figure.name != "requested")
    return replace(message, figures=figures + others)


BFC = Dialect(
    name="bfc-allocator",
    framework="XLA or TensorFlow",
    memory=Memory.DEVICE,
    start=re.compile(r"Allocator \((?:\w+_bfc|mklcpu|cpu|gpu_host_bfc)\) ran out of memory"),
    needles=(" ran out of memory",),
    clauses=BFC_NAMES,
    device=re.compile(r"Allocator \(GPU_(\d+)_bfc\)"),
    refine=_prefer_printed,
    unit_bytes=None,
    span=6000,
)


def _allocated_is_in_use(message: OomMessage) -> OomMessage:
    in_use = message.figure("in_use")
    return with_field(message, allocated_bytes=in_use.bytes) if in_use else message


BFC_STATS = Dialect(
    name="bfc-statistics",
    framework="XLA or TensorFlow",
    memory=Memory.DEVICE,
    start=re.compile(r"Stats:\s+(?:\S+ \S+ \S+ \S+\] )?Limit:"),
    needles=("stats:",),
    clauses=(*BFC_NAMES[3:], ("num_allocs", re.compile(r"\bNumAllocs:\s+(\d+)"))),
    refine=_allocated_is_in_use,
    is_warning=True,
)

EXHAUSTED = Dialect(
    name="xla-resource-exhausted",
    framework="XLA",
    memory=Memory.DEVICE,
    start=re.compile(
        r"Out of memory while trying to allocate \d|Out of memory allocating \d+ bytes"
        r"|RESOURCE_EXHAUSTED: Failed to allocate request"
        r"|RESOURCE_EXHAUSTED: (?!Out of memory while|XLA:TPU|Failed|TPU|.{0,60}Ran out of memory in memory space)"
        r"(?=.{0,80}(?:[Mm]emory|OOM|alloc))"
    ),
    needles=("out of memory while trying", "out of memory allocating", "resource_exhausted"),
    clauses=(
        ("requested", re.compile(r"(?:trying to allocate|memory allocating)\s+([\d,]+\s*bytes)")),
        ("requested", re.compile(r"(?:trying to allocate|memory allocating)\s+(\d[\d.,]{0,20}\s?[KMGT]i?B)")),
        ("requested", re.compile(rf"Failed to allocate request for\s+{SIZE}\s*\((\d+B)\)")),
        ("requested", re.compile(rf"[Aa]ttempting to (?:allocate|reserve)\s+({SIZE})")),
        ("free", re.compile(rf"There (?:are|is)\s+({SIZE})\s+free")),
    ),
    device=re.compile(r"device ordinal (\d+)"),
)

ASSIGNMENT = Dialect(
    name="xla-buffer-assignment",
    framework="XLA",
    memory=Memory.DEVICE,
    start=re.compile(r"BufferAssignment (?:OOM Debugging\.?\s{0,4}(?:BufferAssignment stats)?|stats)"),
    needles=("bufferassignment",),
    clauses=(
        ("parameters", _named("parameter allocation")),
        ("constants", _named("constant allocation")),
        ("live_out", _named("maybe_live_out allocation")),
        ("temporaries", _named("preallocated temp allocation")),
        ("temporary_fragmentation", _named("preallocated temp fragmentation")),
        ("program", _named("total allocation")),
        ("fragmentation", _named("total fragmentation")),
    ),
    is_warning=True,
)

PEAK_BUFFER = Dialect(
    name="xla-peak-buffer",
    framework="XLA",
    memory=Memory.DEVICE,
    start=re.compile(r"Buffer \d{1,4}:\s+Size:|(?m:^\s{0,6}\d{1,3}\. Size:)"),
    needles=(". size:", *(f"buffer {digit}" for digit in range(1, 10))),
    clauses=(("buffer", _named(r"Size")),),
    shape=re.compile(r"Shape:\s*([a-z]+\d*\[[\d,]*\])"),
    is_warning=True,
)

TPU = Dialect(
    name="xla-tpu-memory-space",
    framework="XLA",
    memory=Memory.DEVICE,
    start=re.compile(r"Ran out of memory in memory space \w+"),
    needles=("ran out of memory in memory space",),
    clauses=(
        ("used", re.compile(rf"Used\s+({SIZE})\s+of")),
        ("capacity", re.compile(rf"Used\s+{SIZE}\s+of\s+({SIZE})")),
        ("exceeded", re.compile(rf"Exceeded \w+ capacity by\s+({SIZE})")),
        ("system_reserved", re.compile(rf"\n[ \t]{{0,12}}reserved\s+({SIZE})")),
        ("program", re.compile(rf"\n[ \t]{{0,12}}program\s+({SIZE})")),
        ("arguments", re.compile(rf"\n[ \t]{{0,12}}arguments\s+({SIZE})")),
        ("outputs", re.compile(rf"Output size\s+({SIZE})")),
        ("temporaries", re.compile(rf"HLO temp\s+({SIZE})")),
    ),
    device=re.compile(r"in memory space (\w+)"),
    shape=re.compile(r"Shape:\s*([a-z]+\d*\[[\d,]*\])"),
    span=6000,
)

DIALECTS = (REMATERIALIZATION, BFC, TPU, EXHAUSTED, ASSIGNMENT, PEAK_BUFFER, BFC_STATS)
