"""What was seen of a real run: one process writes its records one by one, as lines of JSON."""

from dataclasses import dataclass

WATCH_SCHEMA = "peaksight.watch/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedProcess:
    """Who writes: the first line of a file.

    `run` is the same for all processes of one launch, `restart` how often the launcher started it again. `started` is
    in seconds since 1970, `slurm_job` is empty outside of SLURM.
    """

    line: str = "process"
    schema: str = WATCH_SCHEMA
    run: str
    argv: tuple[str, ...]
    rank: int
    local_rank: int
    world_size: int
    host: str
    pid: int
    started: float
    peaksight: str
    python: str
    restart: int = 0
    slurm_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCard:
    """A card, once the process uses it. `settings` are those of the allocator as the environment has them."""

    line: str = "card"
    device: int
    name: str
    total_bytes: int
    torch: str
    settings: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStep:
    """One step on one card; `device` is None where the process uses none.

    A step ends when every optimizer has stepped; `step` counts from 1, `time` is its end in seconds since 1970,
    `seconds` what it took. The peaks are those within it, `allocated_bytes` and `reserved_bytes` what is left at its
    end, `retries` and `ooms` how often in it the allocator gave its cache back, and could not serve a request.
    `free_bytes` of the card and `host_bytes` of the process are measured now and then, else None; `free_trend` is the
    change of the free bytes per step over the last measurements. The predicted ones are None without a prediction.
    """

    line: str = "step"
    step: int
    time: float
    seconds: float
    device: int | None = None
    peak_allocated_bytes: int = 0
    peak_reserved_bytes: int = 0
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    retries: int = 0
    ooms: int = 0
    free_bytes: int | None = None
    free_trend: float | None = None
    host_bytes: int | None = None
    predicted_allocated_bytes: int | None = None
    predicted_reserved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEvent:
    """Something that happened during `step`: `kind` names it, `text` is a sentence for people."""

    line: str = "event"
    kind: str
    step: int
    time: float
    text: str
    device: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedScalar:
    """What the script logged as `name` between two events: `count` values after `since` (the event, or "start")."""

    line: str = "scalar"
    name: str
    since: str
    first_step: int
    last_step: int
    count: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCheck:
    """One thing that a plan expects of its run; `holds` is None where the run does not tell."""

    line: str = "expectation"
    name: str
    expected: str
    measured: str
    holds: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedEnd:
    """The last line: how the script ended. A file without one is of a process that still runs, or was killed."""

    line: str = "end"
    step: int
    time: float
    exit_code: int
    error: str = ""


Line = WatchedProcess | WatchedCard | WatchedStep | WatchedEvent | WatchedScalar | ExpectationCheck | WatchedEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """All that one process wrote. `end` is None if nothing says how it ended."""

    process: WatchedProcess
    cards: tuple[WatchedCard, ...] = ()
    steps: tuple[WatchedStep, ...] = ()
    events: tuple[WatchedEvent, ...] = ()
    scalars: tuple[WatchedScalar, ...] = ()
    expectations: tuple[ExpectationCheck, ...] = ()
    end: WatchedEnd | None = None
