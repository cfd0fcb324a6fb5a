"""Two runs beside each other, and the commits of a history: what `peaksight compare --json` prints.

The field names are the published schema. Bytes are those of blocks alive at the peak, as in `Holder`.
"""

from dataclasses import dataclass
from enum import StrEnum

from peaksight.records.allocations import Category
from peaksight.records.capture import Approximation
from peaksight.records.phases import Phase
from peaksight.records.report import Gpu, OutOfMemory, Peak


class LineMatch(StrEnum):
    """How a line of A was found in B.

    SAME_FILE: its file is the same in both, so its number is. TEXT: the file changed, and the line says the same.
    EDITED: it says something similar, between lines that say the same. NUMBER: what the lines say is not known of both
    runs, so the number is taken. ALONE: it is in one run only, or nothing like it is in the other.
    """

    SAME_FILE = "same_file"
    TEXT = "text"
    EDITED = "edited"
    NUMBER = "number"
    ALONE = "alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One of the two runs, with the fields of its `Report`; `oom` is without what was alive then.

    `given` is what names it: the file of its capture, or the command as typed.
    """

    given: str
    argv: tuple[str, ...]
    gpu: Gpu
    torch: str
    device_rules: str
    fits: bool | None
    peak: Peak
    oom: OutOfMemory | None
    not_simulated: tuple[Approximation, ...]
    device: int
    num_devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDifference:
    """The most that was allocated during a phase, None in a run without it; these rows do not add up."""

    phase: Phase
    a_bytes: int | None
    b_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseDifference:
    """What a rule found: by how much each peak would fall without it, None where it found nothing.

    Of several findings of a rule in one run it is the largest; `title` is B's where both have one. These rows do not
    add up.
    """

    rule: str
    title: str
    a_bytes: int | None
    b_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryDifference:
    """What one category holds at each peak; `difference_bytes` is B's less A's."""

    category: Category
    a_bytes: int
    b_bytes: int
    difference_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleDifference:
    """What was made while one module ran, by its path (FQN); empty outside of any."""

    module: str
    a_bytes: int
    b_bytes: int
    difference_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDifference:
    """What was made at one line, `a_source` in A and `b_source` in B (`train.py:88`).

    None is a run that has nothing from it, empty what no line of the script made. `text` is what the line says, in B
    where it is in both, empty where that is not known.
    """

    a_source: str | None
    b_source: str | None
    matched: LineMatch
    text: str
    a_bytes: int
    b_bytes: int
    difference_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Where the difference of two peaks comes from.

    The `difference_bytes` of `by_category`, of `by_module` and of `by_line` each add up to
    `allocated_difference_bytes`, and their other bytes to the two peaks. The largest difference comes first.
    """

    schema: str
    a: ComparedRun
    b: ComparedRun
    allocated_difference_bytes: int
    reserved_difference_bytes: int
    by_phase: tuple[PhaseDifference, ...]
    by_category: tuple[CategoryDifference, ...]
    by_module: tuple[ModuleDifference, ...]
    by_line: tuple[LineDifference, ...]
    causes: tuple[CauseDifference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPeak:
    """The peak of the script at one commit, and by how much it is higher than at the commit `since`.

    `since` is the last one before it with an answer, its first parent unless that has none; None for the first.
    Without an answer all numbers are None, and `failure` says why. `largest` is the line with the largest difference,
    None where no line has any.
    """

    commit: str
    subject: str
    since: str | None
    allocated_bytes: int | None
    reserved_bytes: int | None
    fits: bool | None
    allocated_difference_bytes: int | None
    largest: LineDifference | None
    failure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitHistory:
    """The peaks of the commits in `range`, oldest first; the first one is the commit that the range starts after."""

    schema: str
    argv: tuple[str, ...]
    range: str
    commits: tuple[CommitPeak, ...]
