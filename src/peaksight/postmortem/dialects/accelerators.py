"""MPS, XPU and others whose words are their own."""

import re

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect
from peaksight.records import Memory

MPS = Dialect(
    name="mps",
    framework="PyTorch (MPS)",
    memory=Memory.DEVICE,
    start=re.compile(r"MPS backend out of memory"),
    needles=("mps backend out of memory",),
    clauses=(
        ("allocated", re.compile(rf"(?:MPS|current|currently) allocated:\s*({SIZE})")),
        ("other", re.compile(rf"other allocations:\s*({SIZE})")),
        ("limit", re.compile(rf"max allowed:\s*({SIZE})")),
        ("requested", re.compile(rf"Tried to allocate\s+({SIZE})")),
    ),
)

MPS_BUFFER = Dialect(
    name="mps-buffer",
    framework="PyTorch (MPS)",
    memory=Memory.DEVICE,
    start=re.compile(r"Invalid buffer size:"),
    needles=("invalid buffer size:",),
    clauses=(("requested", re.compile(rf"Invalid buffer size:\s*({SIZE})")),),
)

METAL = Dialect(
    name="metal",
    framework="Metal",
    memory=Memory.DEVICE,
    start=re.compile(r"kIOGPUCommandBufferCallbackErrorOutOfMemory|\[METAL\] .{0,80}Insufficient Memory"),
    needles=("callbackerroroutofmemory", "insufficient memory"),
)

XPU_NATIVE = Dialect(
    name="xpu-native",
    framework="SYCL",
    memory=Memory.DEVICE,
    start=re.compile(
        r"Native API returns: -?\d+ \((?:PI_ERROR_OUT_OF_(?:RESOURCES|HOST_MEMORY)|PI_OUT_OF_RESOURCES)\)"
        r"|UR_RESULT_ERROR_OUT_OF_(?:RESOURCES|DEVICE_MEMORY)"
    ),
    needles=("out_of_resources", "out_of_host_memory", "out_of_device_memory"),
)

NPU_DRIVER = Dialect(
    name="npu-driver",
    framework="CANN",
    memory=Memory.DEVICE,
    start=re.compile(r"(?:EL0004|ACL_ERROR_RT_MEMORY_ALLOCATION|207001).{0,40}|\[Error\]: Failed to allocate memory"),
    needles=("el0004", "acl_error_rt_memory_allocation", "failed to allocate memory"),
)

DIALECTS = (MPS, MPS_BUFFER, METAL, XPU_NATIVE, NPU_DRIVER)
