"""The course of a run: how full the card was over its allocations, and what with."""

from dataclasses import dataclass

from peaksight.records.allocations import Category
from peaksight.records.phases import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What holds memory. `module` is without the numbers of layers (`h.*.mlp`), which hold the most together."""

    category: Category
    module: str
    source: str
    op: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBytes:
    """What the place with the index `place` in `Course.places` holds at a moment."""

    place: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryColumn:
    """What one category holds, an entry for each of `Course.ticks`."""

    category: Category
    bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpan:
    """Ticks in which everything was born in one `phase` of one `step`; the next begins where it ends."""

    first_tick: int
    last_tick: int
    step: int
    phase: Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How full the card was over a run, in some hundred parts; a tick is as in `Allocation`.

    A part has as many births as any other of its step, and stands for itself at `ticks`: the first moment at which it
    is fullest. Where a step is fullest as it begins, that moment is a part of its own. So the peak of every step is
    among them. All other columns have an entry for each part, too: the step and the phase of the last birth up to then,
    the most and the least that was allocated during the part, what the categories hold of the most (they add up to it),
    and the places that hold most of it, largest first. `places` are those that `top` names.

    Spans that are too short to be seen are part of the one before. `failed_tick` is where the first failure on this
    card falls: in the course of the run itself it is the last tick before, in that of the same run without a limit
    the tick of the allocation that failed. It is None where nothing failed, or the runs had not allocated the same.
    """

    ticks: tuple[int, ...]
    steps: tuple[int, ...]
    phases: tuple[Phase, ...]
    allocated_bytes: tuple[int, ...]
    least_allocated_bytes: tuple[int, ...]
    held: tuple[CategoryColumn, ...]
    top: tuple[tuple[PlaceBytes, ...], ...]
    places: tuple[Place, ...]
    spans: tuple[PhaseSpan, ...]
    peak_tick: int
    failed_tick: int | None = None
