"""Fewer rows for a person: the live set by category, and its largest holders over repeated layers."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from peaksight.records import Category, Holder
from peaksight.records.module_paths import fold_layers

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Holders shown as one; what they need not agree in is None, or empty."""

    bytes: int
    count: int
    category: Category | None = None
    module: str = ""
    source: str = ""

    @property
    def category_words(self) -> str:
        """The category as a person reads it."""
        return (self.category or "").replace("_", " ")


def by_category(holders: Iterable[Holder]) -> list[Row]:
    """One row a category, largest first; they add up to the holders, as do those of the functions below."""
    return _merge(holders, lambda holder: {"category": holder.category})


def by_module(holders: Iterable[Holder]) -> list[Row]:
    """One row a module; numbered layers count as one."""
    return _merge(holders, lambda holder: {"module": fold_layers(holder.module)})


def by_line(holders: Iterable[Holder]) -> list[Row]:
    """One row a source line."""
    return _merge(holders, lambda holder: {"source": holder.source})


def by_place(holders: Iterable[Holder]) -> list[Row]:
    """One row for each category, module and source line; numbered layers count as one module."""
    return _merge(holders, lambda h: {"category": h.category, "module": fold_layers(h.module), "source": h.source})


def _merge(holders: Iterable[Holder], shared: Callable[[Holder], dict[str, Any]]) -> list[Row]:
    """One row for all holders that agree in what `shared` tells, largest first."""
    groups: dict[tuple[Any, ...], list[Holder]] = defaultdict(list)
    for holder in holders:
        groups[tuple(shared(holder).items())].append(holder)
    rows = [_row(dict(facts), group) for facts, group in groups.items()]
    return sorted(rows, key=lambda row: (-row.bytes, row.category or "", row.module, row.source))


def _row(facts: dict[str, Any], group: list[Holder]) -> Row:
    return Row(bytes=sum(h.bytes for h in group), count=sum(h.count for h in group), **facts)


def ends(rows: list[T], count: int) -> list[T]:
    """All `rows`, or the first and the last where there are more than `count`."""
    return rows if len(rows) <= count else rows[: count // 2] + rows[-(count - count // 2) :]
