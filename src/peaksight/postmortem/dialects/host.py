"""The host's memory: the kernel's killer, allocators of the CPU, shared memory, and processes that just vanish."""

import re

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect
from peaksight.records import Memory
from peaksight.units import KIB

KERNEL = Dialect(
    name="kernel-oom-killer",
    framework="Linux",
    memory=Memory.HOST,
    start=re.compile(
        r"(?:Memory cgroup out of memory|Out of memory(?: \(oom_kill_allocating_task\))?): Kill(?:ed)? process \d+"
        r"|invoked oom-killer|oom-kill:constraint=\w+|oom_reaper: reaped process \d+"
    ),
    needles=("kill process", "killed process", "oom-kill", "oom_reaper"),
    clauses=(
        ("total_virtual", re.compile(r"total-vm:(\d+)kB")),
        ("process", re.compile(r"anon-rss:(\d+)kB")),
        ("file_mapped", re.compile(r"file-rss:(\d+)kB")),
        ("shared", re.compile(r"shmem-rss:(\d+)kB")),
    ),
    unit_bytes=KIB,
)

SCHEDULER = Dialect(
    name="host-killed-by-scheduler",
    framework="scheduler",
    memory=Memory.HOST,
    start=re.compile(
        r"Detected \d+ oom[-_]kill event|oom-kill event|OOMKilled|Exceeded (?:job|step) memory limit|TERM_MEMLIMIT"
        r"|killed by the cgroup out-of-memory handler|OUT_OF_MEMORY(?=\s+\d+:\d+)|State: OUT_OF_MEMORY"
        r"|[Tt]ask was killed due to the node running low on memory|killed due to memory pressure \(OOM\)"
        r"|job killed after reaching LSF memory usage limit|vmem \d+\w+ exceeded limit|memory usage limit exceeded"
    ),
    needles=(
        "oom-kill", "oom_kill", "oomkilled", "memory limit", "term_memlimit", "out-of-memory handler", "out_of_memory",
        "running low on memory", "memory pressure", "memory usage limit", "exceeded limit",
    ),
)  # fmt: skip

CPU_ALLOCATOR = Dialect(
    name="host-allocator",
    framework="CPU",
    memory=Memory.HOST,
    start=re.compile(
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)|\bstd::bad_alloc\b(?!: )"
        r"|Unable to allocate .{1,40} for an array|\[Errno 12\] Cannot allocate memory|paging file is too small"
        r"|not enough memory: you tried to allocate|Cannot allocate memory \(os error 12\)|(?<=\n)MemoryError\b"
        r"|^MemoryError\b"
        r"|mmap.{0,40}Cannot allocate memory|Failed to allocate .{0,40} host memory|failed to alloc \d+ bytes on host"
        r"|java\.lang\.OutOfMemoryError|pyarrow\.lib\.ArrowMemoryError"
    ),
    needles=(
        "defaultcpuallocator", "bad_alloc", "unable to allocate", "cannot allocate memory", "paging file is too small",
        "not enough memory", "memoryerror", "host memory", "bytes on host", "outofmemoryerror",
    ),
    clauses=(
        ("requested", re.compile(r"tried to allocate\s+(\d+ bytes)")),
        ("requested", re.compile(rf"Unable to allocate\s+({SIZE})\s+for an array")),
    ),
    shape=re.compile(r"for an array with shape (\([\d, ]*\) and data type \w+)"),
)  # fmt: skip

SHARED = Dialect(
    name="shared-memory",
    framework="PyTorch DataLoader",
    memory=Memory.SHARED,
    start=re.compile(
        r"DataLoader worker \(pid \d+\) is killed by signal: Bus error|workers? (?:are|is) out of shared memory"
        r"|Insufficient shared memory \(shm\)|unable to (?:open|write to|resize|mmap) (?:shared memory object"
        r"|file </torch_)"
        r"|No space left on device.{0,40}(?:shm|torch_)|/dev/shm.{0,60}No space left"
    ),
    needles=("bus error", "shared memory", "torch_", "/dev/shm"),
)

WORKER = Dialect(
    name="dataloader-worker-killed",
    framework="PyTorch DataLoader",
    memory=Memory.HOST,
    start=re.compile(
        r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\) (?:is killed by signal: (?:Killed|Aborted)|exited unexpectedly)"
    ),
    needles=("dataloader worker",),
)

VANISHED = Dialect(
    name="killed-without-words",
    framework="operating system",
    memory=Memory.HOST,
    start=re.compile(
        r"(?m:^\s{0,8}(?:\S{1,200}: line \d+: +\d+ )?Killed(?:\s+\S.{0,300})?$)|(?:exit code|error code|exitcode\s*:"
        r"|exit status"
        r"|returncode:?|code=|Exit Code:|exited with code)\s*(?:137|-9)\b"
        r"|Signal 9 \(SIGKILL\)|Signals\.SIGKILL: 9|signal 9 \(Killed|died with .{0,30}SIGKILL|exit code: 9\b"
    ),
    needles=(
        "killed", "exit code", "error code", "exitcode", "exit status", "returncode", "code=", "exited with code",
        "sigkill", "signal 9",
    ),
    is_warning=True,
    span=300,
)  # fmt: skip

PINNED = Dialect(
    name="pinned-host-memory",
    framework="PyTorch",
    memory=Memory.HOST,
    start=re.compile(
        r"(?:cudaHostAlloc|cudaHostRegister|cuMemHostAlloc|pin_memory|[Pp]in(?:ned"
        r"|ning) memory).{0,120}(?:out of memory|failed)"
        r"|could not allocate pinned host memory"
    ),
    needles=("cudahostalloc", "cudahostregister", "cumemhostalloc", "pin_memory", "pinned", "pinning"),
)

DIALECTS = (KERNEL, SCHEDULER, PINNED, CPU_ALLOCATOR, SHARED, WORKER, VANISHED)
