"""The report of a watched run: what each rank took of each card, over its steps. The field names are the JSON's."""

from dataclasses import dataclass

from peaksight.records.watched import ExpectationCheck, WatchedCard, WatchedEvent, WatchedScalar, WatchedStep

WATCHED_SCHEMA = "peaksight.watched/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPart:
    """Equally many steps in a row on one card: `step` is the first that reserved most among them, of `num_steps`."""

    num_steps: int
    step: WatchedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRank:
    """One rank on one of its cards; `device` is None where it used none.

    The peaks are those of its steps, `peak_step` the step that reserved most. `seconds` is the median of its steps.
    `parts` are all of its steps in order, several as one where there are many. `worst_error` is the largest part by
    which the allocated peak of a step was off its prediction, and `worst_step` that step: None without one.
    `exit_code` is None where nothing says how it ended.
    """

    rank: int
    host: str
    pid: int
    device: int | None
    card: WatchedCard | None
    num_steps: int
    peak_step: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    seconds: float
    retries: int
    ooms: int
    worst_error: float | None
    worst_step: int | None
    parts: tuple[WatchedPart, ...]
    events: tuple[WatchedEvent, ...]
    scalars: tuple[WatchedScalar, ...]
    expectations: tuple[ExpectationCheck, ...]
    exit_code: int | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedReport:
    """The last launch of which there are records: a row for each rank and card, in their order."""

    schema: str
    run: str
    argv: tuple[str, ...]
    world_size: int
    ranks: tuple[WatchedRank, ...]
