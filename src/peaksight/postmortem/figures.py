"""Sizes as programs print them."""

import re
from decimal import Decimal, InvalidOperation

from peaksight.records import Figure

# What NVML's "not available" and "no limit" come to when they are printed as a size: 2^64 bytes.
SENTINEL_BYTES = 1 << 64

_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}

# A number and its unit; the programs read here divide by 1024 whether they print `GiB`, `GB`, `G` or `Gb`.
SIZE = r"\d[\d,]{0,30}(?:\.\d{1,20})?(?:e\+?\d{1,2})?\s{0,2}(?:[KMGTPE]i?[bB]|[bB]ytes?|[KMGTPE]\b|B\b)"
_SIZE = re.compile(r"([\d,]+(?:\.\d+)?(?:e\+?\d+)?)\s*([A-Za-z]*)")


def parse_figure(name: str, printed: str, *, unit_bytes: int | None = None) -> Figure | None:
    """The figure `printed`, with binary units; `unit_bytes` is the unit of a bare number; None for no number."""
    match = _SIZE.match(printed.strip())
    if match is None:
        return None
    unit = 1 << (10 * _POWERS.get(match[2][:1].lower(), 0)) if match[2] else unit_bytes or 1
    digits = match[1].replace(",", "")
    try:
        num_bytes = round(Decimal(digits) * unit)
    except (InvalidOperation, OverflowError):
        return None
    exact = unit == 1
    last_digit = Decimal(1).scaleb(-len(digits.partition(".")[2])) if "e" not in digits else Decimal(0)
    margin = 0 if exact else round(last_digit * unit / 2)
    known = num_bytes < SENTINEL_BYTES - margin
    return Figure(name=name, printed=" ".join(printed.split()), bytes=num_bytes if known else None, margin_bytes=margin)
