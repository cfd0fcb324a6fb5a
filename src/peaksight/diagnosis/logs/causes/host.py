"""The host's memory, told apart from the card's."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.case import Case, Finding
from peaksight.records import Cause, Confidence, Memory, OomMessage
from peaksight.units import format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence


def _line(message: OomMessage) -> str:
    return f"line {message.line}: {message.text[:140]}"


def _is_hosts(case: Case) -> bool:
    """Whether no device's message with figures came first: after one, other processes die as a consequence."""
    return case.message is None or case.message.memory is not Memory.DEVICE or not case.message.figures


def kernel_killed(case: Case) -> Iterator[Finding]:
    """The kernel or a scheduler says that it killed the process for its host memory."""
    found = case.of_dialect("kernel-oom-killer", "host-killed-by-scheduler")
    if found:
        sizes = [f"it held {format_bytes(m.process_bytes)} of host memory" for m in found if m.process_bytes]
        cause = Cause(
            kind="host-oom-kill",
            title="The system killed the process for its host memory (RAM): the card has nothing to do with it",
            confidence=CERTAIN if _is_hosts(case) else POSSIBLE,
            evidence=(_line(found[0]), *sizes[:1]),
            try_first="Fewer DataLoader workers, smaller caches and prefetch, load checkpoints with mmap=True, or "
            "more RAM. A smaller batch on the card does not help.",
        )
        yield Finding(cause, 80)


def host_allocation(case: Case) -> Iterator[Finding]:
    """An allocation on the CPU failed."""
    found = [m for m in case.of_dialect("host-allocator", "tensorflow-tensor") if m.memory is Memory.HOST]
    if found and _is_hosts(case):
        asked = [f"asked for {format_bytes(m.requested_bytes)}" for m in found if m.requested_bytes]
        cause = Cause(
            kind="host-memory",
            title="The host's memory (RAM) ran out, not the card's",
            confidence=CERTAIN,
            evidence=(_line(found[0]), *asked[:1]),
            try_first="Load in pieces, mmap, lower precision, fewer workers; on Windows a larger paging file.",
        )
        yield Finding(cause, 78)


def shared_memory(case: Case) -> Iterator[Finding]:
    """/dev/shm is too small for the workers' batches."""
    found = [m for m in case.evidence.messages if m.memory is Memory.SHARED]
    if found:
        cause = Cause(
            kind="shared-memory",
            title="Shared memory (/dev/shm) is full: neither the card's memory nor the RAM as a whole",
            confidence=CERTAIN,
            evidence=(_line(found[0]),),
            try_first="docker run --shm-size=16g or --ipc=host, fewer workers, "
            "torch.multiprocessing.set_sharing_strategy('file_system').",
        )
        yield Finding(cause, 82)


def worker_killed(case: Case) -> Iterator[Finding]:
    """A DataLoader worker was killed: usually for host memory."""
    found = case.of_dialect("dataloader-worker-killed")
    if found and _is_hosts(case):
        cause = Cause(
            kind="host-oom-kill",
            title="A DataLoader worker was killed, usually by the kernel for host memory",
            confidence=LIKELY,
            evidence=(_line(found[0]),),
            try_first="Fewer workers, smaller prefetch_factor; dmesg shows whether the kernel did it.",
        )
        yield Finding(cause, 60)


def vanished(case: Case) -> Iterator[Finding]:
    """Killed by signal 9 without a word: usually the kernel, for host memory; CUDA raises an error instead."""
    found = case.of_dialect("killed-without-words")
    if found and not case.failures:
        cause = Cause(
            kind="host-oom-kill",
            title="The process was killed (signal 9) without a message of CUDA: usually by the kernel or the "
            "container, for host memory",
            confidence=LIKELY,
            evidence=(_line(found[0]),),
            try_first="dmesg -T | grep -i kill, and the container's memory limit; then less host memory, not a "
            "smaller batch.",
        )
        yield Finding(cause, 50)


RULES = (kernel_killed, host_allocation, shared_memory, worker_killed, vanished)
