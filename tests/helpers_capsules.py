"""Capsules and records of ranks that a test makes up."""

from dataclasses import replace

import msgspec

from peaksight.live.capsule_file import CapsuleFile, append_line
from peaksight.live.sinks.lines import LinesSink
from peaksight.records.capsule import (
    CapsuleCard,
    CapsuleEnding,
    CapsuleFailure,
    CapsuleRun,
    CardProcess,
    HostMemory,
    Sign,
    StackFrame,
)
from peaksight.records.watched import WatchedEnd, WatchedProcess, WatchedStep
from peaksight.units import GIB

NOON = 1_795_867_200.0
STACK = (
    StackFrame(filename="/opt/lib/python3.11/site-packages/torch/nn/functional.py", line=5, name="relu"),
    StackFrame(filename="/home/me/train.py", line=12, name="<module>"),
)


def process_of(rank, *, host="node1", world_size=4, **about):
    """A rank of four that one torchrun started at noon."""
    facts = {"run": "job", "argv": ("train.py", "--batch", "8"), "pid": 100 + rank, "started": NOON}
    facts |= {"peaksight": "0.1.0", "python": "3.11.7", "local_rank": rank, "world_size": world_size}
    return WatchedProcess(rank=rank, host=host, **(facts | about))


def steps_of(*, until, late=0.0, seconds=1.0, allocated=lambda step: GIB):
    """Steps of one second since noon, as a clock has them that is `late`."""
    return tuple(
        WatchedStep(
            step=step, time=NOON + late + step * seconds, seconds=seconds, device=0,
            peak_allocated_bytes=8 * GIB, peak_reserved_bytes=9 * GIB, allocated_bytes=allocated(step),
        )
        for step in range(1, until + 1)
    )  # fmt: skip


def failure_of(**about):
    """A T4 of which 1 GiB is free, and 2 are asked for in step 4."""
    card = CapsuleCard(
        device=0, name="Tesla T4", total_bytes=15 * GIB, free_bytes=GIB, allocated_bytes=11 * GIB,
        reserved_bytes=12 * GIB, num_alloc_retries=1, driver="580.1",
    )  # fmt: skip
    facts = {"time": NOON + 4, "sign": Sign.ALLOCATOR, "step": 4, "number": 1, "requested_bytes": 2 * GIB}
    card = replace(card, **about.pop("card", {}))
    return CapsuleFailure(card=card, stack=STACK, modules=("Net", "Net.relu"), **(facts | about))


def write_capsule(folder, process, failure, *, steps=(), lines=(), ending=None, **about):
    """A capsule of `process`; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank{process.rank}.{process.host}.{process.pid}.capsule"
    run = {"directory": "/home/me", "script_digest": "", "torch": "2.14.1+cu130", "cuda": "13.0", "nccl": "2.29.7",
           "settings": "", "host_at_start": HostMemory(oom_kills=0)}  # fmt: skip
    file = CapsuleFile(path, seconds=60)
    file.write("run", CapsuleRun(process=process, **(run | about)))
    file.write("failure", failure)
    file.write("steps", {"steps": steps})
    for kind, content in lines:
        file.write(kind, content)
    file.finish(left_out=False)
    if ending is not None:
        append_line(path, "ending", ending)
    return path


def ended_by_memory(step=3):
    """What a script ends with whose error nobody caught."""
    return CapsuleEnding(
        time=NOON + 5, step=step, exit_code=1, error="OutOfMemoryError", message="torch.OutOfMemoryError: CUDA out of "
        "memory. Tried to allocate 2.00 GiB.", is_out_of_memory=True,
    )  # fmt: skip


def write_record(directory, process, *, steps=(), error=None, exit_code=0, events=()):
    """The lines of `process`, without an end where `exit_code` is None."""
    sink = LinesSink(directory, process)
    for step in steps:
        sink.write(step)
    for event in events:
        sink.write(event)
    if exit_code is not None:
        sink.write(WatchedEnd(step=len(steps), time=NOON + 1800, exit_code=exit_code, error=error or ""))
    sink.close()
    return sink.path


def other_process(num_bytes):
    """Another process of this size, beside the one that failed."""
    return (
        CardProcess(pid=9, name="python", bytes=num_bytes),
        CardProcess(pid=100, name="python", bytes=2 * GIB, is_this=True),
    )


def error_file(path, message, timestamp):
    """As torchelastic writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"message": {"message": message, "extraInfo": {"py_callstack": "", "timestamp": str(timestamp)}}}
    path.write_bytes(msgspec.json.encode(content))
