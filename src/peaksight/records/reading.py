"""What a log says, and what follows from it: the records of `peaksight read`, whose JSON has these field names."""

from dataclasses import dataclass
from enum import StrEnum

from peaksight.records.phases import Phase


class Memory(StrEnum):
    """Which memory ran out. A device's figures say nothing of the host's, and the other way around."""

    DEVICE = "device"
    HOST = "host"
    SHARED = "shared"
    KERNEL = "kernel"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How far the text decides a cause: by itself, as the best reading of it, or as one of several."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number as printed. `bytes` is None for a sentinel such as 2^64; `margin_bytes` is half the last digit."""

    name: str
    printed: str
    bytes: int | None
    margin_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    """Memory of one process as the message or nvidia-smi prints it; `device` is the index nvidia-smi gives."""

    pid: int
    bytes: int
    printed: str
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomMessage:
    """One message about memory.

    `dialect` names the grammar that it follows, `is_warning` a message that ended nothing. `line` counts from 1, `rank`
    is None where the text names none. Sizes not printed are None; all printed ones are in `figures`, also those without
    a field. `idle_bytes` is what the allocator keeps beside what tensors use, `process_bytes` the whole process,
    `limit_bytes` a cap that somebody set. `at` is the person's own innermost line, `shape` that of the tensor, `time`
    when it was printed (`11-28 12:10:00.123456`), empty where the log does not say.
    """

    dialect: str
    framework: str
    memory: Memory
    line: int
    text: str
    is_warning: bool = False
    rank: int | None = None
    device: str = ""
    requested_bytes: int | None = None
    capacity_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    idle_bytes: int | None = None
    process_bytes: int | None = None
    limit_bytes: int | None = None
    figures: tuple[Figure, ...] = ()
    processes: tuple[ProcessUse, ...] = ()
    at: str = ""
    phase: Phase | None = None
    step: int | None = None
    shape: str = ""
    frames: tuple[str, ...] = ()
    time: str = ""

    def figure(self, name: str) -> Figure | None:
        """The first figure called `name`, None where the message does not print it."""
        return next((figure for figure in self.figures if figure.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    """Memory in use at a step, as a training log prints it."""

    step: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """Words in the log that point to a mechanism: `slug` names it, `quote` is the line."""

    slug: str
    quote: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number of the job that the log states, as `batch` 8."""

    name: str
    value: int
    quote: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A named size in prose, as `KV cache` 6 GB; rows of one `block` stand together. GB is taken as 10^9."""

    label: str
    printed: str
    low_bytes: int
    high_bytes: int
    line: int
    block: int
    heading: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of arithmetic over printed figures; `holds` is False for figures that cannot be true together."""

    name: str
    text: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A tensor whose bytes are the requested size, within the rounding of the allocator and of the printed figure."""

    what: str
    shape: tuple[int, ...]
    element_bytes: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why it probably happened: `kind` is the slug of the mechanism, `try_first` what to do about it."""

    kind: str
    title: str
    confidence: Confidence
    evidence: tuple[str, ...]
    try_first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """A rank that ended because another was missing, as an NCCL timeout; `time` as that of a message."""

    quote: str
    time: str = ""
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvidence:
    """What a log contains, before anything is concluded. `num_more_messages` were counted and not read.

    `root_cause_rank` is what torchrun names, `command` what was typed; `card_names` begin with names as printed.
    """

    sources: tuple[str, ...]
    num_bytes: int = 0
    num_lines: int = 0
    messages: tuple[OomMessage, ...] = ()
    num_more_messages: int = 0
    clues: tuple[Clue, ...] = ()
    facts: tuple[Fact, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    claims: tuple[Claim, ...] = ()
    claim_checks: tuple[Check, ...] = ()
    samples: tuple[MemorySample, ...] = ()
    first_failing_rank: int | None = None
    root_cause_rank: int | None = None
    command: str = ""
    card_names: tuple[str, ...] = ()
    abort: Abort | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The answer of `peaksight read`, which its `--json` prints.

    `decided` says whether the text decides the cause; if not, `causes` are what such a text often comes from.
    """

    schema: str
    sources: tuple[str, ...]
    happened: str
    decided: bool
    causes: tuple[Cause, ...]
    checks: tuple[Check, ...]
    fits: tuple[Fit, ...]
    cannot_tell: tuple[str, ...]
    run_next: str
    first_failing_rank: int | None
    messages: tuple[OomMessage, ...]
    num_more_messages: int
    clues: tuple[Clue, ...]
    facts: tuple[Fact, ...]
    claims: tuple[Claim, ...]
    num_lines: int
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """How the log of one rank ends, in one sentence; `time` is that of its failure, empty where the log prints none."""

    rank: int
    source: str
    happened: str
    time: str = ""


class ToldBy(StrEnum):
    """What tells which rank failed first."""

    TIMES = "times"
    CAUSE = "cause"
    LAUNCHER = "launcher"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """The logs of several ranks of one job, read together.

    `first_failing_rank` is None if the logs do not tell. `reading` is the log of that rank, else of the lowest one that
    ran out of memory; `others` are the ranks beside it.
    """

    schema: str
    happened: str
    first_failing_rank: int | None
    told_by: ToldBy
    reading: Reading
    others: tuple[RankEnd, ...]
