"""The rows of a comparison for a person: layers folded, small ones in one row, so that each table still adds up."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from peaksight.records import Comparison, LineDifference, LineMatch, ModuleDifference, Phase
from peaksight.records.module_paths import fold_layers

NUM_ROWS = 10
BY_MODULE = "By module"
CAUSES = "Causes, and by how much each peak would be lower without them"
# A row is small if its difference is less than this part of the largest one.
_SMALL = 200

_PHASES = {
    Phase.INIT: "before the first forward",
    Phase.OPTIMIZER: "optimizer step",
    Phase.SAVE: "saving",
    Phase.OTHER: "the rest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """What both runs hold of one thing, None a run without it; `note` says more of it."""

    name: str
    a_bytes: int | None
    b_bytes: int | None
    note: str = ""

    @property
    def difference_bytes(self) -> int | None:
        """B's bytes less A's, None if either has none."""
        return None if self.a_bytes is None or self.b_bytes is None else self.b_bytes - self.a_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceTable:
    """The largest rows, the others as one if there are any, and the total of all, which is that of the peaks.

    `nowhere` is what a row without a name is called.
    """

    title: str
    nowhere: str
    rows: tuple[DifferenceRow, ...]
    others: DifferenceRow | None
    total: DifferenceRow


def tables(comparison: Comparison) -> tuple[DifferenceTable, ...]:
    """Where the difference comes from, in three ways."""
    categories = [
        DifferenceRow(name=row.category.replace("_", " "), a_bytes=row.a_bytes, b_bytes=row.b_bytes)
        for row in comparison.by_category
    ]
    lines = [
        DifferenceRow(name=line_name(row), a_bytes=row.a_bytes, b_bytes=row.b_bytes, note=row.text)
        for row in comparison.by_line
    ]
    return (
        _table("By category", "", categories, comparison),
        _table(BY_MODULE, "outside any module", _folded(comparison.by_module), comparison),
        _table("By line", "outside the script", lines, comparison),
    )


def peak_rows(comparison: Comparison) -> list[DifferenceRow]:
    """The numbers of the two peaks."""
    a, b = comparison.a.peak, comparison.b.peak
    numbers = [
        ("allocated", a.allocated_bytes, b.allocated_bytes),
        ("reserved", a.reserved_bytes, b.reserved_bytes),
        ("process", a.process_bytes, b.process_bytes),
    ]
    return [
        DifferenceRow(name=name, a_bytes=a_bytes, b_bytes=b_bytes)
        for name, a_bytes, b_bytes in numbers
        if a_bytes is not None or b_bytes is not None
    ]


def phase_rows(comparison: Comparison) -> list[DifferenceRow]:
    """The most that was allocated in each phase."""
    return [
        DifferenceRow(name=_PHASES.get(row.phase, row.phase), a_bytes=row.a_bytes, b_bytes=row.b_bytes)
        for row in comparison.by_phase
    ]


def cause_rows(comparison: Comparison) -> list[DifferenceRow]:
    """What the rules found in either run."""
    return [
        DifferenceRow(name=f"{cause.title} ({cause.rule})", a_bytes=cause.a_bytes, b_bytes=cause.b_bytes)
        for cause in comparison.causes
    ]


def line_name(row: LineDifference) -> str:
    """`train.py:40`; `train.py:40 -> 42` where it moved, with `~` in front if it was edited; or in which run alone."""
    a, b = row.a_source, row.b_source
    if a is None or b is None:
        return f"{b} (B only)" if a is None else f"{a} (A only)"
    edited = "~ " if row.matched is LineMatch.EDITED else ""
    if a == b:
        return f"{edited}{a}"
    (a_file, _), (b_file, b_number) = a.rsplit(":", 1), b.rsplit(":", 1)
    return f"{edited}{a} -> {b_number if a_file == b_file else b}"


def _folded(modules: Sequence[ModuleDifference]) -> list[DifferenceRow]:
    """One row for the same module of all layers."""
    groups: dict[str, list[ModuleDifference]] = defaultdict(list)
    for row in modules:
        groups[fold_layers(row.module)].append(row)
    return [_sum(group, name=module) for module, group in groups.items()]


def _table(title: str, nowhere: str, rows: Sequence[DifferenceRow], comparison: Comparison) -> DifferenceTable:
    """`rows` by the size of their differences; small ones and those beyond `NUM_ROWS` are folded."""
    rows = sorted(rows, key=lambda row: -_size(row))
    least = max(1, _size(rows[0]) // _SMALL) if rows else 0
    shown = [row for row in rows[:NUM_ROWS] if _size(row) >= least]
    others = rows[len(shown) :]
    a, b = comparison.a.peak.allocated_bytes, comparison.b.peak.allocated_bytes
    return DifferenceTable(
        title=title,
        nowhere=nowhere,
        rows=tuple(shown),
        others=_sum(others, name=_others(others)) if others else None,
        total=DifferenceRow(name="total", a_bytes=a, b_bytes=b),
    )


def _others(rows: Sequence[DifferenceRow]) -> str:
    """`3 others`, of which it is said if nothing changed."""
    unchanged = "" if any(map(_size, rows)) else ", unchanged"
    return f"{len(rows)} {'other' if len(rows) == 1 else 'others'}{unchanged}"


def _sum(rows: Sequence[DifferenceRow] | Sequence[ModuleDifference], name: str) -> DifferenceRow:
    return DifferenceRow(
        name=name, a_bytes=sum(r.a_bytes or 0 for r in rows), b_bytes=sum(r.b_bytes or 0 for r in rows)
    )


def _size(row: DifferenceRow) -> int:
    return abs(row.difference_bytes or 0)
