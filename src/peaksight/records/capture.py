"""A capture: every allocation of one run, with what was known at its birth."""

from dataclasses import dataclass

from peaksight.records.allocations import Allocation, AllocatorCall, Failure
from peaksight.records.facts import (
    BackwardFact,
    BatchFact,
    CallFact,
    CheckpointFact,
    CollectiveFact,
    Hold,
    LabelFact,
    ModuleFact,
    OptimizerFact,
    TermFact,
    WeightsFact,
)
from peaksight.records.jax_program import JaxProgram, ProgramCall
from peaksight.records.script_facts import CheckpointFlagFact, FreezeFact, SettingFact, StatementFact


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPeak:
    """The peaks of one training step; `step` counts from 1, ticks as in `Allocation`.

    `complete` is False for what came after the last optimizer step: a tail, or a run without any.
    `backward_began` lists the ticks at which a backward pass of this step started. `num_alloc_retries` counts how
    often the card was full and the allocator gave its cached blocks back to go on. `may_be_trial` tells that it may
    belong to a search for a batch size, written by hand.
    """

    step: int
    first_tick: int
    last_tick: int
    backward_began: tuple[int, ...]
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    complete: bool = True
    num_alloc_retries: int = 0
    may_be_trial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What one complete step has the card do, and the predicted `seconds` that it takes.

    The first begins with the first forward. `flops` are counted by torch's formulas, `bytes` are those that kernels
    read and write, `kernels` how many are launched and `kernel_seconds` what they take alone: the host does the rest.
    """

    step: int
    seconds: float
    flops: int
    bytes: int
    kernels: int
    kernel_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximation:
    """Something that was not simulated exactly; `bytes` is its size, None when unknown.

    `at_most_bytes` is the most by which the peak may be higher, None where nothing is known of that either.
    """

    slug: str
    what: str
    bytes: int | None
    at_most_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReached:
    """Device work that the run did not get to, in or after the training loop.

    `at` is its line (`train.py:214`), `text` the line's condition, loop or statement (`if step % 100 == 0`), or the
    name of a method that a library did not call (`validation_step`).
    """

    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """What the script says at a line that allocated: `at` is its place as in `Allocation.source`, `text` is stripped.

    `file_sha256` is that of the text of its file, from which it is seen whether two runs had the same one.
    """

    at: str
    text: str
    file_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchWrite:
    """A change that was kept from the person's files.

    `path` is relative to the working directory where it is below it; that of a directory ends in `/`. `kind` is
    `written` or `deleted`, `bytes` the size of the file written, 0 for a deletion.
    """

    path: str
    bytes: int
    kind: str = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The installed torch, whose Python code ran, and the build whose device rules were simulated."""

    installed: str
    device_rules: str


# How a run ends whose peak may not be that of the training.
WITHOUT_ANSWER = frozenset({"interrupted", "failed", "untrained", "deadlock"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One simulated run on one device, that with the index `device`: a run has a capture of each that it used.

    Of a job of `world_size` processes it is the run of that with the number `rank`.

    `allocations` are in order of birth. `peak_tick` is the tick of the first allocation that reached
    `peak_allocated_bytes`. `finished` says why the run ended: `script` (its end), `steady` (two steps alike),
    `steps` (as many as asked), `unsteady` (twenty steps that never agree), `recorded` (a snapshot of a real run), or
    one of `WITHOUT_ANSWER`: `interrupted`, `failed`, `untrained` (its end, but no optimizer ever stepped), `deadlock`
    (the collectives of its ranks differ).

    `calls` are in order of their ticks, and `failures` in theirs; `fatal` is the index of the failure that ended the
    run, None if the script got over all of them. `outside_bytes` is the most that the process held outside the
    allocator, beside its context. `not_reached` is None where nothing could look for it. `source_lines` are the
    lines of `allocations` whose files could be read.

    `work` has the complete steps of a simulated run.

    `observed` tells that the objects of the script were looked at: without it the tables of facts that follow are empty
    because nothing could fill them. `without_effect` are the kinds of changes of a plan that did nothing in the run.
    Those on the script as a whole are the same in every capture of a run.

    Of a run under JAX `pool_bytes` is what its allocator may take of the card, all of it at the start where
    `preallocated`, `programs` is the jitted function that made the peak, and `program_calls` are all of them. The pool
    is None under PyTorch.
    """

    argv: tuple[str, ...]
    gpu: str
    versions: Versions
    allocations: tuple[Allocation, ...]
    steps: tuple[StepPeak, ...]
    peak_tick: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_requested_bytes: int
    peak_active_bytes: int
    not_simulated: tuple[Approximation, ...]
    writes: tuple[ScratchWrite, ...]
    finished: str
    script_exit: int
    seconds: float
    calls: tuple[AllocatorCall, ...] = ()
    failures: tuple[Failure, ...] = ()
    fatal: int | None = None
    outside_bytes: int = 0
    not_reached: tuple[NotReached, ...] | None = None
    device: int = 0
    rank: int = 0
    world_size: int = 1
    observed: bool = False
    holds: tuple[Hold, ...] = ()
    passes: tuple[CallFact, ...] = ()
    backwards: tuple[BackwardFact, ...] = ()
    terms: tuple[TermFact, ...] = ()
    modules: tuple[ModuleFact, ...] = ()
    optimizers: tuple[OptimizerFact, ...] = ()
    batches: tuple[BatchFact, ...] = ()
    labels: tuple[LabelFact, ...] = ()
    weights: tuple[WeightsFact, ...] = ()
    checkpoints: tuple[CheckpointFact, ...] = ()
    checkpoint_flags: tuple[CheckpointFlagFact, ...] = ()
    settings: tuple[SettingFact, ...] = ()
    freezes: tuple[FreezeFact, ...] = ()
    statements: tuple[StatementFact, ...] = ()
    source_lines: tuple[SourceLine, ...] = ()
    collectives: tuple[CollectiveFact, ...] = ()
    without_effect: tuple[str, ...] = ()
    work: tuple[StepWork, ...] = ()
    pool_bytes: int | None = None
    preallocated: bool = False
    programs: tuple[JaxProgram, ...] = ()
    program_calls: tuple[ProgramCall, ...] = ()
