"""What a run needs at several values of one of its flags, or on several cards."""

from dataclasses import dataclass

from peaksight.records.proposals import Tried

SWEEP_SCHEMA = "peaksight.sweep/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptValue:
    """The run at one `value`, as a row of a table: on the card `gpu`, of which it may reserve `limit_bytes`."""

    value: str
    gpu: str
    limit_bytes: int
    tried: Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """The answer of `fix --sweep`, `--max-batch` and `--cheapest`: `asked` says of which, `flag` is what was varied.

    `rows` are all that was simulated, in the order of their values. `best` is the one that was asked for: the largest
    value that fits, or the smallest card; None where none fits.
    """

    schema: str = SWEEP_SCHEMA
    argv: tuple[str, ...]
    asked: str
    flag: str
    rows: tuple[SweptValue, ...]
    best: SweptValue | None
    seconds: float
