"""A table of frozen dataclasses as columns, for files of many rows; its strings are written once."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")


class Interned(msgspec.Struct, Generic[T]):
    """A column of strings: each different one in `values`, and for each row its place there."""

    values: list[T]
    rows: list[Annotated[int, msgspec.Meta(ge=0)]]


def row_type(hint: Any) -> type | None:
    """The dataclass whose rows `hint` holds (`tuple[Allocation, ...]`), None where it is no table."""
    item = get_args(hint)[0] if get_origin(hint) is tuple else None
    return item if is_dataclass(item) and isinstance(item, type) else None


def to_columns(rows: Sequence[Any]) -> dict[str, Any]:
    """The columns of `rows`, which are instances of one dataclass and at least one."""
    hints = get_type_hints(type(rows[0]))
    columns = {field.name: list(map(attrgetter(field.name), rows)) for field in fields(rows[0])}
    return {name: _intern(column) if _is_string(hints[name]) else column for name, column in columns.items()}


def from_columns(row: type[T], columns: dict[str, msgspec.Raw]) -> list[T]:
    """The rows that the JSON `columns` hold; a missing column takes its default, one that is not known is skipped.

    Raises:
        msgspec.ValidationError, LookupError, TypeError, ValueError: the columns are not those of `row`.
    """
    hints = {name: hint for name, hint in get_type_hints(row).items() if name in columns}
    values = [_column(columns[name], hint) for name, hint in hints.items()]
    return [row(**dict(zip(hints, cells, strict=True))) for cells in zip(*values, strict=True)]


def _intern(column: Iterable[Any]) -> Interned[Any]:
    places: dict[Any, int] = {}
    rows = [places.setdefault(value, len(places)) for value in column]
    return Interned(values=list(places), rows=rows)


def _column(raw: msgspec.Raw, hint: Any) -> list[Any]:
    if not _is_string(hint):
        return msgspec.json.decode(raw, type=list[hint])
    interned = msgspec.json.decode(raw, type=Interned[hint])
    return [interned.values[place] for place in interned.rows]


def _is_string(hint: Any) -> bool:
    """Whether a column of `hint` repeats itself: strings, enumerations, and either of them or None."""
    return any(isinstance(kind, type) and issubclass(kind, (str, Enum)) for kind in (hint, *get_args(hint)))
