"""Fewer rows for a person: the live set by category, and its largest holders over repeated layers."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from peaksight.records import Category, Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Holders shown as one: `module` and `source` are empty in a row by category alone."""

    bytes: int
    count: int
    category: Category
    module: str = ""
    source: str = ""


def by_category(holders: Iterable[Holder]) -> list[Row]:
    """One row a category, largest first; they add up to the holders."""
    return _merge(holders, lambda holder: (holder.category,))


def by_place(holders: Iterable[Holder]) -> list[Row]:
    """One row for each category, module and source line, largest first; numbered layers count as one module."""
    return _merge(holders, lambda holder: (holder.category, fold_layers(holder.module), holder.source))


def fold_layers(module: str) -> str:
    """A module path without layer numbers: `h.11.mlp` is `h.*.mlp`."""
    return re.sub(r"(?<=\.)\d+(?=\.|$)", "*", module)


def _merge(holders: Iterable[Holder], key: Callable[[Holder], tuple[Hashable, ...]]) -> list[Row]:
    groups: dict[tuple, list[Holder]] = defaultdict(list)
    for holder in holders:
        groups[key(holder)].append(holder)
    rows = [_row(names, group) for names, group in groups.items()]
    return sorted(rows, key=lambda row: (-row.bytes, row.category, row.module, row.source))


def _row(names: tuple, group: list[Holder]) -> Row:
    category, module, source = (*names, "", "")[:3]
    num_bytes, count = sum(h.bytes for h in group), sum(h.count for h in group)
    return Row(bytes=num_bytes, count=count, category=category, module=module, source=source)
