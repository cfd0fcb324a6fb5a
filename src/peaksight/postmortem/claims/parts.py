"""What the rows of a budget are, which sums it has, and which cards the text names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from peaksight.postmortem.claims.rows import NUMBER, UNITS, number
from peaksight.records import Claim

GB = 10**9
TOTAL = re.compile(r"^\W{0,3}(?:grand |expected |overall )?(?:total|sum|combined)\b", re.I)
GRADIENTS = re.compile(r"^gradients?\b", re.I)
OPTIMIZER = re.compile(r"optimi[sz]er|\badam", re.I)
_PARAMETERS = re.compile(r"\b(?:model|parameters?|params?|weights?)\b|\d(?:\.\d+)?B\b", re.I)
_NOT_PARAMETERS = re.compile(
    r"gradient|optimi[sz]er|adam|activation|cache|total|memory usage|utili[sz]ation|forward|backward|saved", re.I
)
_CARDS = re.compile(
    r"\((?P<a>\d{1,3})\s?GB\)|(?:\bGPUs?|cards?) with (?P<b>\d{1,3})(?:\s?[-\u2013]\s?(?P<c>\d{1,3}))?\s?GB"
    r"|(?<![\d.])(?P<d>\d{1,3})\s?GB?\s?(?:GPU|card|limit)|\b[A-Z]{1,2}\d{2,4}\s(?P<e>\d{2,3})\s?GB",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Budget:
    """Rows that stand together under one total."""

    total: Claim
    parts: tuple[Claim, ...]


def is_parameters(row: Claim) -> bool:
    """Whether `row` is parameters, frozen or not."""
    return bool(_PARAMETERS.search(row.label)) and not _NOT_PARAMETERS.search(row.label)


def budgets(rows: Sequence[Claim]) -> Iterator[Budget]:
    """Each block of rows with its first total, in the order of the text."""
    for _, group in groupby(rows, key=lambda row: row.block):
        parts: list[Claim] = []
        for row in group:
            if TOTAL.search(row.label):
                if len(parts) >= 2:
                    yield Budget(row, tuple(parts))
                break
            parts.append(row)


def cards(text: str) -> list[int]:
    """The sizes of the cards that `text` names, in bytes, each once in its order."""
    found = (int(size) * GB for match in _CARDS.finditer(text) for size in match.groups() if size)
    return list(dict.fromkeys(found))


def size(amount: str, unit: str) -> float:
    """`1.34`, `GB` in bytes."""
    return number(amount) * UNITS[unit.lower()]


def line_of(text: str, position: int) -> int:
    """The number of the line at `position`."""
    return text.count("\n", 0, position) + 1


__all__ = [
    "GB", "GRADIENTS", "NUMBER", "OPTIMIZER", "TOTAL", "Budget", "budgets", "cards", "is_parameters", "line_of", "size"
]  # fmt: skip
