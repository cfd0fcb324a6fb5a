"""TensorFlow, Paddle, CuPy, DeepSpeed, vLLM and others."""

import re
from dataclasses import replace
from math import prod

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect, with_field
from peaksight.records import Figure, Memory, OomMessage
from peaksight.units import GIB

_ELEMENT_BYTES = {
    "float": 4,
    "float32": 4,
    "half": 2,
    "bfloat16": 2,
    "double": 8,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "bool": 1,
}


def _size_of_shape(message: OomMessage) -> OomMessage:
    """The message prints no size: it is that of the shape. On a CPU it is the host's memory."""
    if "by allocator cpu" in message.text or "by allocator mklcpu" in message.text:
        message = replace(message, memory=Memory.HOST)
    dims, _, dtype = message.shape.partition(" and type ")
    sizes = [int(size) for size in re.findall(r"\d{1,12}", dims)]
    if not sizes or dtype not in _ELEMENT_BYTES:
        return message
    num_bytes = prod(sizes) * _ELEMENT_BYTES[dtype]
    figure = Figure(name="requested", printed=message.shape, bytes=num_bytes)
    return with_field(replace(message, figures=(figure, *message.figures)), requested_bytes=num_bytes)


TENSORFLOW = Dialect(
    name="tensorflow-tensor",
    framework="TensorFlow",
    memory=Memory.DEVICE,
    start=re.compile(r"OOM when allocating tensor (?:with|of) shape"),
    needles=("oom when allocating tensor",),
    device=re.compile(r"device:(\w+:\d+)"),
    shape=re.compile(r"(?:with|of) shape\s?(\[[\d,]*\] and type \w+)"),
    refine=_size_of_shape,
)

TENSORFLOW_DRIVER = Dialect(
    name="tensorflow-driver",
    framework="XLA or TensorFlow",
    memory=Memory.DEVICE,
    start=re.compile(
        r"failed to (?:allocate|alloc)\s+\S{1,30} (?:\(\d+ bytes\) )?(?:bytes )?(?:from device|on host)"
        r"|CUDA_ERROR_OUT_OF_MEMORY"
    ),
    needles=("failed to alloc", "cuda_error_out_of_memory"),
    clauses=(
        ("requested", re.compile(r"failed to alloc(?:ate)?\s+\S{1,30}\s+\((\d+ bytes)\)")),
        ("requested", re.compile(r"failed to alloc(?:ate)?\s+(\d+ bytes) on host")),
    ),
)

PADDLE = Dialect(
    name="paddle",
    framework="Paddle",
    memory=Memory.DEVICE,
    start=re.compile(r"Out of memory error on (?:GPU|XPU|NPU|\w+) \d+"),
    needles=("out of memory error on",),
    clauses=(
        ("requested", re.compile(rf"[Cc]annot allocate\s+({SIZE})\s+(?:GPU )?memory")),
        ("allocated", re.compile(rf",\s*({SIZE})\s+memory has been allocated")),
        ("free", re.compile(rf"available memory is\s+(?:only\s+)?({SIZE})")),
    ),
    device=re.compile(r"error on \w+ (\d+)"),
)

CUPY = Dialect(
    name="cupy",
    framework="CuPy",
    memory=Memory.DEVICE,
    start=re.compile(r"Out of memory allocating [\d,]+ bytes(?=\s*\(allocated so far)"),
    needles=("out of memory allocating",),
    clauses=(
        ("requested", re.compile(r"allocating\s+([\d,]+ bytes)")),
        ("allocated", re.compile(r"allocated so far:\s*([\d,]+ bytes)")),
        ("limit", re.compile(r"limit set to:\s*([\d,]+ bytes)")),
    ),
)

RMM = Dialect(
    name="rmm",
    framework="RMM",
    memory=Memory.DEVICE,
    start=re.compile(r"std::bad_alloc: (?:out_of_memory|CUDA error)|rmm::out_of_memory|Maximum pool size exceeded"),
    needles=("std::bad_alloc: ", "rmm::out_of_memory", "maximum pool size exceeded"),
)

CACHE_FLUSHES = Dialect(
    name="deepspeed-cache-flushes",
    framework="DeepSpeed",
    memory=Memory.DEVICE,
    start=re.compile(r"\d+ pytorch allocator cache flushes since last step"),
    needles=("pytorch allocator cache flushes",),
    is_warning=True,
)

DEEPSPEED_USAGE = Dialect(
    name="deepspeed-usage",
    framework="DeepSpeed",
    memory=Memory.DEVICE,
    start=re.compile(r"\bMemAllocated\s?=|\bMA \d[\d.]* GB"),
    needles=("memallocated", "max_ma"),
    clauses=(
        ("allocated", re.compile(rf"(?<!Max)MemAllocated\s?=\s?({SIZE})")),
        ("max_allocated", re.compile(rf"MaxMemAllocated\s?=\s?({SIZE})")),
        ("allocated", re.compile(rf"\bMA\s+({SIZE})")),
        ("max_allocated", re.compile(rf"Max_MA\s+({SIZE})")),
        ("reserved", re.compile(rf"(?<!Max_)\bCA\s+({SIZE})")),
        ("max_reserved", re.compile(rf"Max_CA\s+({SIZE})")),
    ),
    is_warning=True,
    span=300,
)

VLLM = Dialect(
    name="vllm-cache",
    framework="vLLM",
    memory=Memory.DEVICE,
    start=re.compile(
        r"No available memory for the cache blocks|Free memory on device .{0,40}? on startup is less than"
        r"|KV cache is needed, which is larger than|larger than the maximum number of tokens that can be stored in KV"
    ),
    needles=("memory for the cache blocks", "free memory on device", "kv cache is needed", "can be stored in kv"),
    clauses=(
        ("free", re.compile(r"Free memory on device \S*\s?\(([\d.]+)/[\d.]+ GiB\)")),
        ("available", re.compile(rf"available KV cache memory\s*\(({SIZE})\)")),
    ),
    unit_bytes=GIB,
)

MINDSPORE = Dialect(
    name="mindspore",
    framework="MindSpore",
    memory=Memory.DEVICE,
    start=re.compile(r"memory isn't enough and alloc failed"),
    needles=("memory isn't enough",),
    clauses=(("requested", re.compile(r"alloc size:\s*(\d+B)")),),
)

INFERENCE = Dialect(
    name="inference-runtime",
    framework="ONNX Runtime or TensorRT",
    memory=Memory.DEVICE,
    start=re.compile(
        r"Failed to allocate memory for requested buffer of size \d+"
        r"|Requested amount of GPU memory \(\d+ bytes\) could not be allocated"
        r"|Error allocating \d+ bytes of device memory"
    ),
    needles=("requested buffer of size", "could not be allocated", "bytes of device memory"),
    clauses=(("requested", re.compile(r"(?:buffer of size|GPU memory \(|allocating) ?(\d+)")),),
)

TRITON = Dialect(
    name="triton-resources",
    framework="Triton",
    memory=Memory.KERNEL,
    start=re.compile(r"out of resources?: (?:shared memory|registers|threads|tensor memory)"),
    needles=("out of resource",),
    clauses=(
        ("requested", re.compile(r"Required:\s*(\d+)")),
        ("limit", re.compile(r"Hardware limit:\s*(\d+)")),
    ),
)

DIALECTS = (
    TENSORFLOW, TENSORFLOW_DRIVER, PADDLE, CUPY, RMM, CACHE_FLUSHES, DEEPSPEED_USAGE, VLLM, MINDSPORE, INFERENCE,
    TRITON,
)  # fmt: skip
