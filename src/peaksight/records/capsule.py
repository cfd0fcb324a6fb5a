"""The OOM capsule: what one rank knew when it ran out of memory."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from peaksight.records.allocations import Role
from peaksight.records.watched import WatchedProcess, WatchedStep

CAPSULE_FORMAT: Final = "peaksight.capsule"
CAPSULE_VERSION: Final = 1
SUFFIX: Final = ".capsule"


def part_of(path: Path) -> Path:
    """What a capsule is called while it is written."""
    return path.with_name(path.name + ".part")


class Sign(StrEnum):
    """How running out of memory showed: the allocator's own error, or one of those that it hides behind."""

    ALLOCATOR = "allocator"
    DRIVER = "driver"
    CUBLAS = "cublas"
    CUDNN = "cudnn"
    CUSOLVER = "cusolver"
    CUSPARSE = "cusparse"
    CUFFT = "cufft"
    NCCL = "nccl"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame:
    """One frame of a Python stack."""

    filename: str
    line: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardProcess:
    """A process that has memory of the card, as the driver counts it; `bytes` is None where it does not tell."""

    pid: int
    name: str
    bytes: int | None
    is_this: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """The host's memory, by the control group of the process where it has one.

    `oom_kills` is how many of its processes the host has killed since the group was made, None where it does not count.
    """

    limit_bytes: int | None = None
    used_bytes: int | None = None
    oom_kills: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleCard:
    """The card that had too little, its driver, and what the allocator counted on it.

    `allowed_bytes` is what PyTorch may take of it at most where a memory fraction was set, else None.
    """

    device: int
    name: str = ""
    total_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    allowed_bytes: int | None = None
    num_alloc_retries: int | None = None
    driver: str = ""
    processes: tuple[CardProcess, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleFailure:
    """What happened, the first line of a capsule behind its head.

    `time` is in seconds since 1970. `requested_bytes` is None where only a message told of it. `number` counts the
    failures of the process from 1. `stack` is that of the thread that failed, innermost first, `main_stack` of the main
    one where that is another; `modules` are the paths of the modules that were running, outermost first.
    """

    time: float
    sign: Sign
    step: int
    number: int
    requested_bytes: int | None
    card: CapsuleCard
    error: str = ""
    message: str = ""
    stack: tuple[StackFrame, ...] = ()
    main_stack: tuple[StackFrame, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleRun:
    """What ran: `script_digest` is that of a plan (`digest_of_script`), `settings` those of the allocator.

    `scheduler` are the variables of SLURM that name job, step, node and task.
    """

    process: WatchedProcess
    directory: str
    script_digest: str
    torch: str
    cuda: str
    nccl: str
    settings: str
    scheduler: dict[str, str] = field(default_factory=dict)
    host: HostMemory = HostMemory()
    host_at_start: HostMemory = HostMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleHolder:
    """Blocks alive at the failure that agree in `module` and `source`, the person's line as it is in the stack."""

    bytes: int
    count: int
    module: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorName:
    """Which tensor of a module or an optimizer begins at `address`."""

    address: int
    role: Role
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleEnding:
    """What became of it: the error that reached the end of the script, empty where none did, and its text."""

    time: float
    step: int
    exit_code: int
    error: str = ""
    message: str = ""
    is_out_of_memory: bool = False
    host: HostMemory = HostMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capsule:
    """All of a capsule but its snapshot.

    `is_whole` is False for one that was cut short; `left_out` tells that the snapshot was as large as it may be.
    """

    file: str
    run: CapsuleRun
    failure: CapsuleFailure
    steps: tuple[WatchedStep, ...] = ()
    holders: tuple[CapsuleHolder, ...] = ()
    ending: CapsuleEnding | None = None
    is_whole: bool = True
    left_out: bool = False
