"""The report: what `--json` prints. The field names are the published schema."""

from dataclasses import dataclass

from peaksight.records.allocations import Category
from peaksight.records.budget import Budget
from peaksight.records.capture import Approximation, NotReached, ScratchWrite
from peaksight.records.course import Course
from peaksight.records.findings import Examined, Finding
from peaksight.records.jax_program import ProgramCall
from peaksight.records.phases import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The card; `usable_bytes` is what the allocator can reserve: total less context, libraries and other
    processes, and no more than a memory fraction allows.
    """

    name: str
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What the job needs on an unlimited card.

    `process_bytes` is what nvidia-smi shows for it: context, libraries and reserved memory. It is never None in reports
    of this release.
    """

    allocated_bytes: int
    reserved_bytes: int
    requested_bytes: int
    process_bytes: int | None
    step: int
    phase: Phase
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Allocations alive at the peak that agree in everything but size; the rows add up to the peak.

    `library` is the innermost frame of a library, `kept_by` what keeps them alive: a role, the autograd node that saves
    them for its backward, a name of the script. `tensor` is the dtype and shape of each (`float32[8, 512, 768]`). Empty
    where the record does not tell.
    """

    bytes: int
    count: int
    category: Category
    module: str
    source: str
    op: str
    phase: Phase
    step: int
    library: str = ""
    kept_by: str = ""
    tensor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """The failure that ends the run on this card.

    `at` is the person's line, of the forward where it happened in a backward pass that `backward_at` called.
    `free_bytes` is what the card had left, None where that was not recorded. `live` is what was alive at that moment,
    as in `live_at_peak`. `device` is the index of the card, `rank` that of the process in its job.
    """

    message: str
    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    step: int
    phase: Phase
    at: str
    backward_at: str | None
    free_bytes: int | None = None
    live: tuple[Holder, ...] = ()
    device: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryBytes:
    """What one category holds at a moment."""

    category: Category
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """The peaks of one step, and what the allocated one is of: `held` adds up to it, largest first.

    `predicted_seconds` is what it takes on the card, None where nothing counted.
    """

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    held: tuple[CategoryBytes, ...] = ()
    predicted_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The card was full and the allocator went on by giving cached blocks back: the run fits, but slowly.

    `count` is how often, `steps` in which steps, `head_room_bytes` how much more memory would have ended it.
    """

    count: int
    steps: tuple[int, ...]
    head_room_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """One of the cards that a run used, by its `index` in the process `rank`; the rest is as in `Report` and `Gpu`.

    What was alive when it ran out of memory is in the `oom` of the report.
    """

    index: int
    fits: bool | None
    usable_bytes: int
    peak: Peak
    oom: OutOfMemory | None
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDifference:
    """What the rank that the report is about holds at its peak for a line beyond what `rank` holds at its own."""

    rank: int
    category: Category
    source: str
    difference_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One answer. `fits` is None for "likely, but something at the peak is unknown".

    `findings` are the causes of the peak, the most decisive first (diagnosis/diagnose.py has the order); `examined` are
    those looked for and not found. `findings` is None where nothing looked, which is not the same as none found.
    `not_reached` names the lines
    (`train.py:214`) whose device work the peak is without, and is None where nothing could look for them;
    `not_reached_lines` has the same ones with what they say.
    `torch` is the installed release, `device_rules` the build whose kernel and workspace rules were used.
    `caught_ooms` counts the failures that the script got over; `retries` is None when the card was never full.
    `undecided` are the slugs in `not_simulated` for which a run that fits does so only likely.
    `course` is how full the card was over the run, None where nothing was simulated: that of the run without a limit,
    where one was made. `budget` is the card as a bar, None in reports that were written before there was one.
    `programs` are the jitted functions of a run under JAX.
    `devices` has all cards that the run used, and the rest is about the one with the index `device`: that on which the
    run fails, or which it fills most. Of a job of `world_size` ranks, these are the cards of those that were simulated,
    `rank` is the one that the rest is about, and `rank_differences` tells why it holds more than the others.
    """

    schema: str
    argv: tuple[str, ...]
    gpu: Gpu
    torch: str
    device_rules: str
    fits: bool | None
    peak: Peak
    oom: OutOfMemory | None
    steps: tuple[StepReport, ...]
    live_at_peak: tuple[Holder, ...]
    findings: tuple[Finding, ...] | None
    not_simulated: tuple[Approximation, ...]
    not_reached: tuple[str, ...] | None
    writes: tuple[ScratchWrite, ...]
    finished: str
    script_exit: int
    seconds: float
    caught_ooms: int = 0
    retries: Retries | None = None
    not_reached_lines: tuple[NotReached, ...] = ()
    undecided: tuple[str, ...] = ()
    device: int = 0
    devices: tuple[DeviceReport, ...] = ()
    examined: tuple[Examined, ...] = ()
    course: Course | None = None
    budget: Budget | None = None
    programs: tuple[ProgramCall, ...] = ()
    rank: int = 0
    world_size: int = 1
    rank_differences: tuple[RankDifference, ...] = ()
