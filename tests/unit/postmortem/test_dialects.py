"""Messages as upstream prints them, one or more for each grammar."""

import io
import json
from pathlib import Path

import pytest

from peaksight.postmortem import read_log
from peaksight.postmortem.dialects import DIALECTS
from peaksight.units import GIB, KIB, MIB


def messages_of(text):
    return read_log(io.BytesIO(text.encode()), "text").messages


TORCH = [
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 16.00 GiB (GPU 0; 11.93 GiB total capacity; 4.00 GiB "
        "already "
        "allocated; 7.33 GiB free; 179.00 KiB cached)",
        {"dialect": "torch-1.0-to-1.3", "requested_bytes": 16 * GIB, "idle_bytes": 179 * KIB},
    ),
    (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 7.93 GiB total capacity; 3.00 GiB "
        "already "
        "allocated; 1.00 GiB free; 4.00 GiB allowed; 3.98 GiB reserved in total by PyTorch)",
        {"device": "3", "limit_bytes": 4 * GIB, "free_bytes": GIB, "allocated_bytes": 3 * GIB},
    ),
    (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU \x00 has a total capacity "
        "of 8.00 "
        "GiB of which 12.00 MiB is free. Including non-PyTorch memory, this process has 7.50 GiB memory in use. Of the "
        "allocated memory 7.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
        {"dialect": "torch-2.2-or-later", "device": "0", "process_bytes": 15 * GIB // 2, "free_bytes": 12 * MIB},
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 "
        "GiB of "
        "which 1.00 GiB is free. Process 12 has 70.00 GiB memory in use. Process 13 has 500.00 MiB memory in use. "
        "40.00 GiB "
        "allowed; Of the allocated memory 60.00 GiB is allocated by PyTorch, with 3.00 GiB allocated in private "
        "pools (e.g., "
        "CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated.",
        {"limit_bytes": 40 * GIB, "reserved_bytes": 61 * GIB, "processes": {12: 70 * GIB, 13: 500 * MIB}},
    ),
    (
        "RuntimeError: XPU out of memory. Tried to allocate 1.95 GiB (GPU 0; 15.56 GiB total capacity; 14.20 GiB "
        "already "
        "allocated; 14.50 GiB reserved in total by PyTorch)",
        {"framework": "PyTorch (XPU)", "capacity_bytes": round(15.56 * GIB)},
    ),
    (
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 "
        "GiB. Of "
        "the allocated memory 14.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but "
        "unallocated. Please "
        "use `empty_cache` to release all unoccupied cached memory.",
        {"framework": "PyTorch (XPU)", "capacity_bytes": 16 * GIB, "idle_bytes": GIB},
    ),
    (
        "RuntimeError: NPU out of memory. Tried to allocate 100.00 MiB (NPU 7; 60.97 GiB total capacity; 59.00 GiB "
        "already "
        "allocated; 59.00 GiB current active; 56.00 MiB free; 59.50 GiB reserved in total by PyTorch)",
        {"device": "7", "free_bytes": 56 * MIB, "framework": "PyTorch (NPU)"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TORCH)
def test_the_allocators_message(text, expected):
    """Every release and backend."""
    (message,) = messages_of(text)
    processes = {process.pid: process.bytes for process in message.processes}
    found = {name: processes if name == "processes" else getattr(message, name) for name in expected}

    assert expected == found


OTHERS = [
    json.loads(line)
    for line in (Path(__file__).parent / "upstream_messages.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("expected", OTHERS, ids=lambda expected: expected["text"][:40])
def test_the_first_message_of_a_text(expected):
    """Alone, and inside a log."""
    text = expected["text"]
    for log in (text, f"step 1\n{text}\nstep 2\n"):
        message = messages_of(log)[0]
        found = {name: getattr(message, name) for name in ("dialect", "memory", "requested_bytes")}
        assert expected == {"text": text, **found}


def test_every_grammar_has_its_example():
    """A dialect without an example above is one that nobody has read."""
    prefixes = {expected["dialect"] for expected in OTHERS} | {"torch"}
    covered_elsewhere = {"torch-more-than-1EB", "torch-cudaMallocAsync", "xla-rematerialization"}
    covered_elsewhere |= {"xla-buffer-assignment", "xla-peak-buffer", "bfc-statistics"}

    assert {d.name for d in DIALECTS} - prefixes - covered_elsewhere == {
        "metal",
        "npu-driver",
        "rmm",
        "pinned-host-memory",
    }


NOISE = """
Epoch 1 step 9: loss 2.3, memory 12 GB, out of 100 batches
CUDA out-of-the-box support; killed by boredom; code=200; exit code: 0
batch 137 of 900 took 9 s; /dev/shm is mounted; cudnn version 9.1
RuntimeError: shape '[2, 3]' is invalid for input of size 4
"""


def test_an_ordinary_log_has_no_message():
    """Words that stand in messages too are none by themselves."""
    assert messages_of(NOISE * 50) == ()
