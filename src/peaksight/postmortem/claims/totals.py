"""Lists and tables with a total: whether the rows add up, and what half a batch would come to."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from peaksight.records import Check, Claim

_TOTAL = re.compile(r"^\W{0,3}(?:grand |expected |overall )?(?:total|sum|combined)\b", re.I)
_BATCH = re.compile(r"batch(?:[_ ]size)?\s?=\s?(\d+)", re.I)
_WITH_BATCH = re.compile(r"^with batch(?:[_ ]size)?\s?=\s?(\d+)", re.I)
_TOLERANCE = 0.04
_GB = 10**9


def check_totals(rows: Sequence[Claim]) -> Iterator[Check]:
    """Each total with the rows above it in its block."""
    for _, group in groupby(rows, key=lambda row: row.block):
        yield from _check_block(list(group))


def _check_block(block: list[Claim]) -> Iterator[Check]:
    parts: list[Claim] = []
    for row in block:
        if _TOTAL.search(row.label):
            if len(parts) >= 2:
                yield _check_total(row, parts)
        elif (match := _WITH_BATCH.match(row.label)) and parts:
            yield from _other_batch(row, parts, int(match[1]))
        else:
            parts.append(row)


def _check_total(total: Claim, parts: list[Claim]) -> Check:
    low, high = sum(part.low_bytes for part in parts), sum(part.high_bytes for part in parts)
    printed = " + ".join(part.printed for part in parts)
    margin = _TOLERANCE * max(high, 1)
    text = f"{printed} = {_range(low, high)}; the text says {total.printed} ({total.label})"
    if low - margin <= total.low_bytes and total.high_bytes <= high + margin:
        return Check(name="total", text=f"{text}: the rows add up.", holds=True)
    return Check(name="total", text=f"{text}: the rows do not add up.", holds=False)


def _other_batch(row: Claim, parts: list[Claim], batch: int) -> Iterator[Check]:
    """What the rows come to at another batch: those that name a batch shrink, the others stay."""
    scaled = [(part, int(match[1])) for part in parts if (match := _BATCH.search(part.label))]
    if not scaled or batch < 1:
        return
    fixed = sum(part.high_bytes for part in parts) - sum(part.high_bytes for part, _ in scaled)
    expected = fixed + sum(part.high_bytes * batch / max(was, 1) for part, was in scaled)
    holds = abs(expected - row.high_bytes) <= _TOLERANCE * expected
    text = f"At batch {batch} the same rows come to {_range(expected, expected)}; the text says {row.printed}."
    yield Check(name="other-batch", text=text, holds=holds)


def _range(low: float, high: float) -> str:
    if round(low / _GB, 2) == round(high / _GB, 2):
        return f"{high / _GB:.2f} GB"
    return f"{low / _GB:.2f} to {high / _GB:.2f} GB"
